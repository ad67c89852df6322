"""Watch events on storage and devices: which record each kind of object becomes, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from muster.model.keys import Key
from muster.scheduler import claims, storage
from muster.scheduler.cache import Cache

VOLUMES, CLAIMS, CLASSES = "persistentvolumes", "persistentvolumeclaims", "storageclasses"
NODE_DRIVERS, DRIVERS, CAPACITIES = "csinodes", "csidrivers", "csistoragecapacities"
ATTACHMENTS = "volumeattachments"
STORAGE = (CLASSES, DRIVERS, NODE_DRIVERS, CAPACITIES, VOLUMES, CLAIMS, ATTACHMENTS)
"""Watched resources, in the order in which they are listed."""
SLICES, DEVICE_CLASSES, DEVICE_CLAIMS, TAINT_RULES = (
    "resourceslices",
    "deviceclasses",
    "resourceclaims",
    "devicetaintrules",
)
DEVICES = (DEVICE_CLASSES, TAINT_RULES, SLICES, DEVICE_CLAIMS)
"""The same of devices."""


class Shelf(NamedTuple):
    """How a resource is read, and put away; None: it is gone."""

    read: Callable[[Mapping[str, Any]], Any]
    put: Callable[[Key, Any], object]


def shelves(cache: Cache) -> Mapping[str, Shelf]:
    """One for each of STORAGE and DEVICES."""
    stock, devices = cache.stock, cache.devices
    return {
        VOLUMES: Shelf(storage.volume, lambda key, record: stock.put_volume(key.name, record)),
        CLAIMS: Shelf(storage.claim, stock.put_claim),
        CLASSES: Shelf(storage.storage_class, lambda key, record: stock.put_class(key.name, record)),
        DRIVERS: Shelf(storage.driver, lambda key, record: stock.put_driver(key.name, record)),
        NODE_DRIVERS: Shelf(storage.drivers_of_node, lambda key, found: cache.put_drivers(key.name, found or {})),
        CAPACITIES: Shelf(storage.capacity, stock.put_capacity),
        ATTACHMENTS: Shelf(storage.attachment, lambda key, what: stock.put_attachment(key.name, what)),
        SLICES: Shelf(claims.resource_slice, lambda key, record: devices.put_slice(key.name, record)),
        DEVICE_CLASSES: Shelf(claims.device_class, lambda key, record: devices.put_class(key.name, record)),
        DEVICE_CLAIMS: Shelf(claims.claim, devices.put_claim),
        TAINT_RULES: Shelf(claims.taint_rule, lambda key, record: devices.put_rule(key.name, record)),
    }
