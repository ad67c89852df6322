"""What the handler functions share: the server's state, and one call of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api import catalog
from muster.api.calls import Request
from muster.api.catalog import Kind
from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.api.validation.field import Path
from muster.apiserver import status
from muster.apiserver.asking import Heard
from muster.apiserver.custom import registry
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.custom.schema import schema_of
from muster.apiserver.log import Raw
from muster.apiserver.schema import Schema, schema
from muster.apiserver.storage import Store

RESERVED_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
YES = ("true", "1", "True", "")
"""How a flag of a query is set."""


@dataclass(slots=True)
class State:
    """The server's settings and its store. See `server.ApiServer` for what they mean."""

    store: Store
    gates: FeatureGates
    new_uid: Callable[[], str]
    priority_admission: bool
    refuse_binding: set[str] = field(default_factory=set)
    heard: Mapping[bytes, Heard] = field(default_factory=dict)
    """What webhooks have answered to the present request so far."""
    fresh_uid: Callable[[], str] = str
    """`new_uid` of questions to webhooks, which are not asked again when a request runs again."""

    def __post_init__(self) -> None:
        self.fresh_uid = self.new_uid

    def served(self) -> list[Kind]:
        return [*(kind for kind in catalog.SERVED if kind.served(self.gates)), *registry.served(self.store)]


@dataclass(slots=True)
class Call:
    """One call about a resource: where it goes, when, and what it warns about."""

    state: State
    request: Request
    now: Instant
    kind: Kind
    namespace: str
    """"" for cluster-scoped kinds, and for collections of all namespaces."""
    name: str
    subresource: str
    warnings: list[str] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return self.state.store

    @property
    def gates(self) -> FeatureGates:
        return self.state.gates

    @property
    def schema(self) -> Schema:
        if isinstance(self.kind, CustomKind):
            return schema_of(self.kind)
        return schema(self.kind.api_version, self.kind.kind)

    def stored(self) -> Raw:
        """The object that the path names.

        Raises:
            Failure: 404, there is none.
        """
        raw = self.present()
        if raw is None:
            raise status.not_found(self.kind, self.name)
        return raw

    def present(self) -> Raw | None:
        """The object that the path names, if there is one."""
        raw = self.store.get(self.kind.resource, self.namespace, self.name)
        return None if raw is None else self.kind.shown(raw)

    def keep(self, name: str, made: dict[str, Any]) -> Raw:
        """Stores a new object or version; as it goes out."""
        stored = self.store.put(self.kind.resource, self.namespace, name, self.kind.kept(made))
        return self.kind.shown(stored)

    def flag(self, name: str) -> bool:
        """A boolean of the query: `true`, `1` or empty is yes.

        Raises:
            Failure: 400, it is neither.
        """
        text = self.request.query.get(name)
        if text is None or text in ("false", "0", "False"):
            return False
        if text in YES:
            return True
        raise status.bad_request(f"query parameter {name}: want true or false, not {text!r}")

    def number(self, name: str) -> int | None:
        """A whole number of the query that is not negative; None if it is absent or empty.

        Raises:
            Failure: 400, it is something else.
        """
        text = self.request.query.get(name, "")
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise status.bad_request(f"query parameter {name}: want a whole number, not {text!r}")
        return int(text)

    def dry_run(self, options: dict[str, Any] | None = None) -> bool:
        """Whether nothing is to be stored: `dryRun=All` in the query (values joined by commas), or in options.

        Raises:
            Failure: 422, another value.
        """
        asked = list(options.get("dryRun") or ()) if options else []
        if "dryRun" in self.request.query:
            asked += self.request.query["dryRun"].split(",")
        for value in asked:
            if value != "All":
                raise status.bad_options(self.request.method, Path("dryRun").not_supported(value, ["All"]))
        return bool(asked)
