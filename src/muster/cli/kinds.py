"""Kinds by the words that people use for them: those of Muster, and those that users define, as the server tells."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from muster.api import catalog, definitions
from muster.api.catalog import Kind
from muster.cli.client import Client
from muster.cli.failure import USAGE, Failure, nearest

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Kinds:
    """What one server serves. It is only asked about words that Muster itself does not know, and once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._users: tuple[Kind, ...] | None = None

    def named(self, word: str) -> Kind:
        """The kind of a plural, singular, kind or short name, alone or with its group: `job` or `job.batch`.

        Raises:
            Failure: there is none; names the nearest word.
        """
        found = built_in(word) or next((kind for kind in self._found() if _is_called(kind, word)), None)
        if found is not None:
            return found
        plurals = {name: kind.plural for kind in (*catalog.KINDS, *self._found()) for name in _words(kind)}
        near = difflib.get_close_matches(word.lower(), plurals, n=1)
        listed = ", ".join(sorted(set(plurals.values())))
        hint = f'did you mean "{plurals[near[0]]}"?' if near else f"known: {listed}"
        raise Failure(f"KIND: unknown resource {word!r}; {hint}", USAGE)

    def of(self, api_version: str, kind: str) -> Kind:
        """The kind of an object.

        Raises:
            ValueError: it is unknown; names the version it is served in, or the nearest kind.
        """
        users = [each for each in self._found(api_version) if each.kind == kind]
        served = [each.api_version for each in users]
        if api_version in served:
            return users[served.index(api_version)]
        if served:
            raise ValueError(f"kind {kind} is served as apiVersion {', '.join(served)}, not {api_version!r}")
        try:
            return catalog.by_kind(api_version, kind)
        except ValueError as error:
            raise ValueError(_told(str(error), kind, [each.kind for each in self._found(api_version)])) from None

    def _found(self, api_version: str = "") -> tuple[Kind, ...]:
        """Kinds beside Muster's own; none where no server answers, since then there are none to be had."""
        if api_version and any(kind.api_version == api_version for kind in catalog.KINDS):
            return ()
        if self._users is None:
            try:
                answer = self._client.call("GET", "/apis", accept=AGGREGATED)
                self._users = tuple(_read(answer.body)) if answer.ok else ()
            except Failure:
                self._users = ()
        return self._users


def built_in(word: str) -> Kind | None:
    """The kind of Muster's own that a word means."""
    for name in (word.partition(".")[0], word):
        try:
            kind = catalog.named(name)
        except ValueError:
            continue
        if name == word or kind.group == word.partition(".")[2]:
            return kind
    return None


def known(api_version: str, kind: str) -> Kind:
    """The kind of an object where no server is asked.

    Raises:
        ValueError: see `Kinds.of`.
    """
    try:
        return catalog.by_kind(api_version, kind)
    except ValueError as error:
        raise ValueError(_told(str(error), kind, [])) from None


def _told(message: str, kind: str, users: list[str]) -> str:
    """What the catalog says of a kind that it does not know, in short where something is near."""
    hint = nearest(kind, [*(each.kind for each in catalog.KINDS), *users])
    return f"{message.partition('; known')[0]}{hint}" if hint and "; known" in message else message


def _words(kind: Kind) -> tuple[str, ...]:
    return (kind.plural, kind.singular, kind.kind.lower(), *kind.short_names)


def _is_called(kind: Kind, word: str) -> bool:
    name, _, group = word.lower().partition(".")
    return name in _words(kind) and group in ("", kind.group, f"{kind.version}.{kind.group}")


def _read(body: Mapping[str, Any]) -> Iterator[Kind]:
    """The kinds of a discovery document that Muster does not have itself, the preferred version of each first."""
    for group in body.get("items") or ():
        name = group["metadata"]["name"]
        for version in group.get("versions") or ():
            for found in version.get("resources") or ():
                kind = Kind(
                    found["responseKind"]["kind"],
                    name,
                    version["version"],
                    found["resource"],
                    found.get("singularResource") or found["resource"],
                    definitions.CustomObject,
                    tuple(found.get("shortNames") or ()),
                    found.get("scope") == "Namespaced",
                )
                if not any(own.path(None) == kind.path(None) for own in catalog.KINDS):
                    yield kind
