"""DefaultStorageClass admission: a claim that names no class gets the default one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muster.api import catalog
from muster.api.storage import BETA_STORAGE_CLASS, default_class
from muster.apiserver.state import Call

Json = dict[str, Any]


def on_create(call: Call, made: Json) -> None:
    """Sets the class of a claim whose `storageClassName` is absent; an empty one asks for none and stays."""
    spec = made.get("spec")
    if not isinstance(spec, Mapping) or "storageClassName" in spec:
        return
    if BETA_STORAGE_CLASS in (made["metadata"].get("annotations") or {}):
        return
    classes: Iterable[Mapping[str, Any]] = call.store.all(catalog.STORAGE_CLASS.plural)
    chosen = default_class(classes)
    if chosen is not None:
        made["spec"] = {**spec, "storageClassName": chosen}
