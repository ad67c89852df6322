"""What expressions say of all devices at once: each is evaluated once for every distinct set of what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from muster.devices.inventory import Device
from muster.devices.selectors import has_capacity, tolerated
from muster.model.devices import Choice, Failure, Offered

NO, YES, UNKNOWN = 0, 1, 2


class DeviceColumns:
    """Columns over devices (`[D]`), made when they are first asked for. Nothing in them is changed."""

    def __init__(self, devices: Sequence[Device], offered: Offered) -> None:
        self.devices = tuple(devices)
        self.place = {device.key: i for i, device in enumerate(self.devices)}
        self._classes, self._matchers = offered.classes, offered.matchers
        self._verdicts: dict[str, np.ndarray] = {}
        self._failures: dict[tuple[str, int], Failure] = {}
        self._selected: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
        self._able: dict[tuple[object, ...], np.ndarray] = {}
        self._tolerated: dict[object, np.ndarray] = {}
        self._codes: dict[str, np.ndarray] | None = None
        self._by_part: dict[str, list[str]] = {}
        size = len(self.devices)
        self.tainted = np.fromiter((bool(d.taints) for d in self.devices), dtype=bool, count=size)
        self.shared = np.fromiter((d.record.shared for d in self.devices), dtype=bool, count=size)

    # -- what a device says

    @cached_property
    def special(self) -> np.ndarray:
        """int64[D]: its own number for each device that is shared or draws on counters, 0 for all others."""
        own = (i + 1 if d.record.shared or d.record.draws else 0 for i, d in enumerate(self.devices))
        return np.fromiter(own, dtype=np.int64, count=len(self.devices))

    def codes(self, name: str) -> np.ndarray:
        """int64[D]: equal where devices say the same of an attribute or capacity; 0: nothing."""
        return self._coded().get(name, np.zeros(len(self.devices), dtype=np.int64))

    def _coded(self) -> Mapping[str, np.ndarray]:
        if self._codes is None:
            self._codes = {}
            values: dict[str, dict[Any, int]] = {}
            for i, device in enumerate(self.devices):
                for said in (device.record.attributes, device.record.capacity):
                    for name, value in said.items():
                        column = self._codes.get(name)
                        if column is None:
                            column = self._codes[name] = np.zeros(len(self.devices), dtype=np.int64)
                            values[name] = {}
                            self._by_part.setdefault(name.rpartition("/")[2], []).append(name)
                        column[i] = values[name].setdefault(value, len(values[name]) + 1)
            drivers: dict[tuple[str, bool], int] = {}
            pairs = ((device.key.driver, device.record.shared) for device in self.devices)
            given = (drivers.setdefault(pair, len(drivers)) for pair in pairs)
            self._codes[""] = np.fromiter(given, dtype=np.int64, count=len(self.devices))
        return self._codes

    def _alike(self, reads: frozenset[str] | None) -> np.ndarray:
        """int64[D]: equal where an expression that reads no more cannot tell devices apart."""
        coded = self._coded()
        if reads is None:
            names: Iterable[str] = (name for name in coded if name)
        else:
            names = (name for part in sorted(reads) for name in self._by_part.get(part, ()))
        found = coded[""]
        for name in names:
            _, found = np.unique(found * (coded[name].max(initial=0) + 1) + coded[name], return_inverse=True)
        return found

    # -- verdicts

    def verdicts(self, expression: str) -> np.ndarray:
        """int8[D]: NO, YES, or UNKNOWN where it failed."""
        known = self._verdicts.get(expression)
        if known is None:
            matcher = self._matchers[expression]
            _, first, alike = np.unique(self._alike(matcher.reads), return_index=True, return_inverse=True)
            said = np.zeros(len(first), dtype=np.int8)
            for k, i in enumerate(first.tolist()):
                device = self.devices[i]
                verdict = matcher(device.key.driver, device.record)
                said[k] = UNKNOWN if isinstance(verdict, Failure) else YES if verdict else NO
                if isinstance(verdict, Failure):
                    self._failures.update({(expression, int(j)): verdict for j in np.flatnonzero(alike == k)})
            known = self._verdicts[expression] = said[alike]
        return known

    def selected(self, choice: Choice) -> np.ndarray:
        """int8[D]: whether class and request select the device; the first expression that does not decides."""
        which = (choice.device_class, choice.selectors)
        known = self._selected.get(which)
        if known is None:
            expressions = self._classes.get(choice.device_class)
            known = np.full(len(self.devices), NO if expressions is None else YES, dtype=np.int8)
            for expression in (*(expressions or ()), *choice.selectors) if expressions is not None else ():
                known = np.where(known == YES, self.verdicts(expression), known)
            self._selected[which] = known
        return known

    def able(self, choice: Choice) -> np.ndarray:
        """bool[D]: selected, and with capacity enough, whoever has it."""
        which = (choice.device_class, choice.selectors, choice.capacity)
        known = self._able.get(which)
        if known is None:
            known = self.selected(choice) == YES
            doubtful = known if choice.capacity else known & self.shared
            for i in np.flatnonzero(doubtful).tolist():
                known[i] = has_capacity(choice, self.devices[i])
            self._able[which] = known
        return known

    def good(self, choice: Choice) -> np.ndarray:
        """bool[D]: able, and no taint keeps the choice off it."""
        known = self._tolerated.get(choice.tolerations)
        if known is None:
            known = ~self.tainted
            for i in np.flatnonzero(self.tainted).tolist():
                known[i] = tolerated(choice, self.devices[i])
            self._tolerated[choice.tolerations] = known
        good: np.ndarray = self.able(choice) & known
        return good

    def means(self, choice: Choice, device: Device) -> bool | Failure:
        """The verdict of class and request on one device (as `Selectors.means`)."""
        i = self.place[device.key]
        verdict = int(self.selected(choice)[i])
        if verdict != UNKNOWN:
            return verdict == YES
        expressions = (*self._classes[choice.device_class], *choice.selectors)
        return next(self._failures[e, i] for e in expressions if (e, i) in self._failures)
