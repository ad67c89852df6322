"""`muster apply`, `get` and `delete`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muster.api import catalog
from muster.api.calls import MERGE_PATCH
from muster.cli import printing
from muster.cli.client import Answer, Client, told
from muster.cli.failure import FAILED, USAGE, Failure, complain, not_a_segment
from muster.cli.kinds import Kinds
from muster.cli.manifests import STRICT, Manifest, load

WITH_DEPENDENTS = {"propagationPolicy": "Background"}
"""What an object owns goes with it: the pods of a Job, its Workload and its PodGroup."""


TREE = "tree"
"""Output of groups only: each with what is below it, and its domain."""


class Target(NamedTuple):
    """What the command line names: `pods`, `pod x y` or `pod/x`; `namespace` None means all of them."""

    kind: str
    names: Sequence[str]
    namespace: str | None


def apply(files: Sequence[str], namespace: str, server: str | None) -> int:
    """Creates or merges every object; goes on after a refusal and fails in the end."""
    client = Client(server)
    manifests = load(files, namespace, Kinds(client).of)
    return _each(manifests, lambda one: _apply(client, one))


def get(target: Target, output: str, selector: str, server: str | None) -> int:
    if output not in (*printing.OUTPUTS, TREE):
        raise Failure(f"-o {output}: unknown output; known: {', '.join((*printing.OUTPUTS, TREE))}", USAGE)
    client = Client(server)
    kind, names = several(target.kind, target.names, Kinds(client))
    if names and selector:
        raise Failure(f"-l {selector}: a selector picks among all {kind.plural}; leave it or the name out", USAGE)
    if names and target.namespace is None and kind.namespaced:
        raise Failure(f"-A: {kind.singular}/{names[0]} is in one namespace; name it with -n", USAGE)
    if output == TREE:
        return _tree(client, kind, names, target.namespace, selector)
    query = {"labelSelector": selector} if selector else None
    if output == "table" and not (kind in catalog.KINDS and printing.has_columns(kind)):
        paths = [kind.path(target.namespace, name) for name in names] or [kind.path(target.namespace)]
        tables = [client.get(path, query, printing.AS_TABLE) for path in paths]
        printing.show_tables(kind, tables, with_namespace=kind.namespaced and target.namespace is None)
        return 0
    found = [client.get(kind.path(target.namespace, name)) for name in names]
    if not names:
        found = client.get(kind.path(target.namespace), query)["items"]
    body = found[0] if len(names) == 1 else {"apiVersion": "v1", "kind": "List", "items": found}
    printing.show(kind, body, output, with_namespace=kind.namespaced and target.namespace is None)
    return 0


def _tree(client: Client, kind: catalog.Kind, names: Sequence[str], namespace: str | None, selector: str) -> int:
    from muster.cli import trees

    if kind not in (catalog.COMPOSITE_POD_GROUP, catalog.POD_GROUP):
        raise Failure(f"-o tree: {kind.plural} have no tree; name compositepodgroups or podgroups", USAGE)
    if selector or namespace is None:
        raise Failure("-o tree: shows one namespace whole; leave out -l and -A, or name a group", USAGE)
    print(trees.printed(client, kind, names, namespace))
    return 0


def delete(kind: str | None, names: Sequence[str], files: Sequence[str], namespace: str, server: str | None) -> int:
    """Deletes the named objects, or those that the files describe; fails in the end if one was refused."""
    if files and kind is not None:
        raise Failure("give either KIND NAME or -f FILE, not both", USAGE)
    if files:
        client = Client(server)
        manifests = load(files, namespace, Kinds(client).of)
        _check_named(manifests)
        manifests.sort(key=lambda one: one.kind is catalog.CUSTOM_RESOURCE_DEFINITION)  # their objects go before them
        return _each(manifests, lambda one: _delete(client, one.kind, one.namespace, one.name))
    if kind is None:
        raise Failure("name what to delete: KIND NAME, KIND/NAME, or -f FILE", USAGE)
    client = Client(server)
    found, chosen = several(kind, names, Kinds(client))
    if not chosen:
        raise Failure(f"NAME is missing: say which of the {found.plural} to delete", USAGE)
    return _each(chosen, lambda name: _delete(client, found, namespace, name))


def several(kind: str, names: Sequence[str], kinds: Kinds) -> tuple[catalog.Kind, list[str]]:
    """`pods`, `pod/x` or `pod` and any number of names to the kind and the names.

    Raises:
        Failure: see `resolve`.
    """
    found, first = resolve(kind, names[0] if names else None, kinds)
    for name in names[1:]:
        _checked_name(name)
    return found, [*names] or ([first] if first else [])


def resolve(kind: str, name: str | None, kinds: Kinds) -> tuple[catalog.Kind, str | None]:
    """`pod/x` or `pod` and `x` to the kind and the name; also as printed, `podgroup.scheduling.k8s.io/x`.

    Raises:
        Failure: the kind is unknown, there are two names, or the name cannot be one.
    """
    word, slash, inline = kind.partition("/")
    if slash and not inline:
        raise Failure(f"{kind}: the name after / is missing; write {word}/NAME", USAGE)
    if slash and name is not None:
        raise Failure(f"{kind} {name}: names two objects; write {word}/{inline} or {word} {name}", USAGE)
    chosen = inline or name
    if chosen is not None:
        _checked_name(chosen)
    return kinds.named(word), chosen


def _checked_name(name: str) -> None:
    fault = not_a_segment(name)
    if fault:
        raise Failure(f"NAME: {fault}", USAGE)


def _each(things: Sequence[Any], act: Any) -> int:
    code = 0
    for thing in things:
        try:
            print(act(thing), flush=True)
        except Failure as failure:
            where = f"{thing.source}: " if isinstance(thing, Manifest) else ""
            complain(f"{where}{failure}")
            code = FAILED
    return code


def _apply(client: Client, one: Manifest) -> str:
    existing = _existing(client, one)
    if existing is None:
        answer = client.call("POST", one.kind.path(one.namespace), one.body, query=STRICT)
        name = _checked(answer)["metadata"]["name"]
        return f"{one._replace(name=name).label} created"
    path = one.kind.path(one.namespace, one.name)
    after = _checked(client.call("PATCH", path, one.body, query=STRICT, content_type=MERGE_PATCH))
    same = after["metadata"]["resourceVersion"] == existing["metadata"]["resourceVersion"]
    return f"{one.label} {'unchanged' if same else 'configured'}"


def _existing(client: Client, one: Manifest) -> Mapping[str, Any] | None:
    if not one.name:
        return None
    answer = client.call("GET", one.kind.path(one.namespace, one.name))
    return None if answer.status == 404 else _checked(answer)


def _check_named(manifests: Sequence[Manifest]) -> None:
    """Before anything is deleted: an object that asks for a generated name could only mean all of its kind."""
    for one in manifests:
        if not one.name:
            wanted = f"muster delete {one.kind.singular} NAME"
            raise Failure(f"{one.source}: metadata.name: missing; with generateName alone, use `{wanted}`")


def _delete(client: Client, kind: catalog.Kind, namespace: str, name: str) -> str:
    _checked(client.call("DELETE", kind.path(namespace, name), query=WITH_DEPENDENTS))
    return f"{printing.label(kind, name)} deleted"


def _checked(answer: Answer) -> Mapping[str, Any]:
    if not answer.ok:
        raise Failure(told(answer))
    body: Mapping[str, Any] = answer.body
    return body
