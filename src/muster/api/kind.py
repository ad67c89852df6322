"""What Muster knows of a kind it serves: names, version, typed view, subresources, defaults, rules, gate.

The server's use of a `Kind`, in order: `prepare` (fields of gates that are off go, status is reset or kept, defaults
come), admission, `validate`. They leave their arguments alone; `prepare` shares what it does not change. Nulls and
fields of wrong types are gone before: the server's schema sees to that, and `validate` says so where it did not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.api.defaults import status
from muster.api.gates import FeatureGates
from muster.api.meta import Part
from muster.api.validation.field import FieldError

Raw = Mapping[str, Any]
Defaults = Callable[[dict[str, Any], Raw | None, FeatureGates], None]
Validator = Callable[[Raw, Raw | None, FeatureGates], list[FieldError]]


def _no_defaults(obj: dict[str, Any], old: Raw | None, gates: FeatureGates) -> None:
    pass


def _no_rules(new: Raw, old: Raw | None, gates: FeatureGates) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table.

    `defaults(obj, old, gates)` fills a dict whose top level is private: it replaces what it changes and never writes
    into a nested value. `validate(new, old, gates)` returns every error it finds; `old` is None on create.
    """

    kind: str
    group: str
    version: str
    plural: str
    singular: str
    struct: type[Part]
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    gate: str | None = None
    """Served only with this gate on."""
    keeps_status: bool = False
    """A status given on create is kept (nodes register with theirs)."""
    counts: tuple[str, ...] = ()
    """Numbers that a status always has, also when they are 0."""
    status_keeps_metadata: bool = False
    """A write of the status changes nothing of the metadata."""
    deletes_collections: bool = True
    created_by_update: bool = False
    """A PUT of an object that is not there creates it."""
    needs_revision: bool = False
    """A PUT has to name the resourceVersion that it replaces."""
    defaults: Defaults = _no_defaults
    validate: Validator = _no_rules
    validate_status: Validator = _no_rules
    selectable: tuple[str, ...] = ()
    """Field selectors beyond metadata.name and metadata.namespace."""
    categories: tuple[str, ...] = ()
    """Names that stand for several resources, such as `all`."""
    asked: bool = False
    """A question: a POST is answered, and nothing is stored."""
    deprecation: str = ""
    """What every call is warned of."""

    @property
    def resource(self) -> str:
        """What the store and the machines call it; kinds that users define have the group in it."""
        return self.plural

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def served(self, gates: FeatureGates) -> bool:
        return self.gate is None or self.gate in gates.on

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection, an object, or a subresource of it; `namespace` None: all namespaces.

        Raises:
            ValueError: a name or namespace is empty, by which one object would become all of them.
        """
        if name == "" or (namespace == "" and self.namespaced):
            raise ValueError(f"{self.plural}: empty {'name' if name == '' else 'namespace'}; None stands for all")
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        where = (
            f"{base}/namespaces/{namespace}/{self.plural}" if self.namespaced and namespace else f"{base}/{self.plural}"
        )
        if name is None:
            return where
        return f"{where}/{name}/{subresource}" if subresource else f"{where}/{name}"

    def prepare(self, raw: Raw, old: Raw | None, gates: FeatureGates) -> dict[str, Any]:
        """What would be stored if it is valid: a new top level over shared nested values; `raw` is not changed."""
        obj = dict(raw)
        if self.has_status:
            status.settle(obj, old, keeps=self.keeps_status, counts=self.counts)
        self.defaults(obj, old, gates)
        return obj

    def shown(self, raw: Raw) -> Raw:
        """A stored object as it goes out."""
        return raw

    def kept(self, raw: dict[str, Any]) -> dict[str, Any]:
        """An object as it is stored."""
        return raw

    def changed(self, old: Raw, new: Raw) -> bool:
        """Whether anything but metadata and status differs, which makes a new generation."""
        return any(old.get(key) != new.get(key) for key in (old.keys() | new.keys()) - {"metadata", "status"})


_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?", re.ASCII)


def version_order(version: str) -> tuple[Any, ...]:
    """A key that sorts versions as Kubernetes does: stable, beta, alpha, the newest of each first."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, version)
    level = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (level, -int(found[1]), -int(found[3] or 0))
