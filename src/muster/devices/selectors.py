"""Which devices a choice can have: its tolerations, and what it asks of capacities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from muster.devices.inventory import Device
from muster.model.devices import Choice, Failure

HARD = ("NoSchedule", "NoExecute")


class Selectors(Protocol):
    """Says what class and request of a choice select (`columns.DeviceColumns`)."""

    def means(self, choice: Choice, device: Device) -> bool | Failure:
        """Whether the device is selected, whatever its taints and whoever has it."""
        ...


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
