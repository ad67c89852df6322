"""Watch events on storage: which record each kind of object becomes, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from muster.model.keys import Key
from muster.scheduler import storage
from muster.scheduler.cache import Cache

VOLUMES, CLAIMS, CLASSES = "persistentvolumes", "persistentvolumeclaims", "storageclasses"
NODE_DRIVERS, DRIVERS, CAPACITIES = "csinodes", "csidrivers", "csistoragecapacities"
ATTACHMENTS = "volumeattachments"
STORAGE = (CLASSES, DRIVERS, NODE_DRIVERS, CAPACITIES, VOLUMES, CLAIMS, ATTACHMENTS)
"""Watched resources, in the order in which they are listed."""


class Shelf(NamedTuple):
    """How a resource is read, and put away; None: it is gone."""

    read: Callable[[Mapping[str, Any]], Any]
    put: Callable[[Key, Any], object]


def shelves(cache: Cache) -> Mapping[str, Shelf]:
    """One for each of STORAGE."""
    stock = cache.stock
    return {
        VOLUMES: Shelf(storage.volume, lambda key, record: stock.put_volume(key.name, record)),
        CLAIMS: Shelf(storage.claim, stock.put_claim),
        CLASSES: Shelf(storage.storage_class, lambda key, record: stock.put_class(key.name, record)),
        DRIVERS: Shelf(storage.driver, lambda key, record: stock.put_driver(key.name, record)),
        NODE_DRIVERS: Shelf(storage.drivers_of_node, lambda key, found: cache.put_drivers(key.name, found or {})),
        CAPACITIES: Shelf(storage.capacity, stock.put_capacity),
        ATTACHMENTS: Shelf(storage.attachment, lambda key, what: stock.put_attachment(key.name, what)),
    }
