"""Which devices a choice means: expressions are evaluated once for each set of attributes that they can tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.devices.inventory import Device
from muster.model.devices import Choice, Failure, Matcher

HARD = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Selectors:
    """Verdicts on devices, remembered. A device class that is not known means no device.

    Args:
        classes: device class -> its expressions.
        matchers: expression -> the matcher.
    """

    classes: Mapping[str, tuple[str, ...]]
    matchers: Mapping[str, Matcher]
    _known: dict[tuple[str, object], bool | Failure] = field(default_factory=dict)

    def means(self, choice: Choice, device: Device) -> bool | Failure:
        """Whether class and request select the device, whatever its taints and whoever has it."""
        expressions = self.classes.get(choice.device_class)
        if expressions is None:
            return False
        for expression in (*expressions, *choice.selectors):
            verdict = self._verdict(expression, device)
            if verdict is not True:
                return verdict
        return True

    def _verdict(self, expression: str, device: Device) -> bool | Failure:
        matcher = self.matchers[expression]
        look = _look(device, matcher.reads)
        known = self._known.get((expression, look))
        if known is None:
            known = self._known[expression, look] = matcher(device.key.driver, device.record)
        return known


def _look(device: Device, reads: frozenset[str] | None) -> object:
    """What a matcher that reads no more can tell of the device."""
    record = device.record
    return (
        device.key.driver,
        record.shared,
        frozenset(
            (name, value)
            for names in (record.attributes, record.capacity)
            for name, value in names.items()
            if reads is None or name.rpartition("/")[2] in reads
        ),
    )


def tolerated(choice: Choice, device: Device) -> bool:
    """Whether no taint keeps the choice off the device (D10)."""
    return all(
        taint.effect not in HARD or any(toleration.tolerates(taint) for toleration in choice.tolerations)
        for taint in device.taints
    )


def asked_of(choice: Choice, device: Device) -> Mapping[str, int] | None:
    """What a choice asks of the capacities of a device, by complete name; None: the device lacks one of them."""
    asked: dict[str, int] = {}
    for name, amount in choice.capacity:
        complete = name if "/" in name else f"{device.key.driver}/{name}"
        if complete not in device.record.capacity:
            return None
        asked[complete] = amount
    return asked


def consumed(choice: Choice, device: Device) -> Mapping[str, int] | None:
    """What a choice takes of a shared device, by complete name; None: it cannot be taken (D11)."""
    asked = asked_of(choice, device)
    if asked is None:
        return None
    taken: dict[str, int] = {}
    for name, capacity in device.record.capacity.items():
        amount = capacity.taken_by(asked.get(name))
        if amount is None or amount > capacity.value:
            return None
        taken[name] = amount
    return taken


def has_capacity(choice: Choice, device: Device) -> bool:
    """Whether the device has as much of everything as the choice asks for, whoever has it."""
    if device.record.shared:
        return consumed(choice, device) is not None
    asked = asked_of(choice, device)
    return asked is not None and all(device.record.capacity[name].value >= amount for name, amount in asked.items())
