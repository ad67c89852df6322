"""`muster apply`, `get` and `delete`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muster.api import catalog
from muster.api.calls import MERGE_PATCH
from muster.cli import printing
from muster.cli.client import Answer, Client, told
from muster.cli.failure import FAILED, USAGE, Failure
from muster.cli.manifests import STRICT, Manifest, load

WITH_DEPENDENTS = {"propagationPolicy": "Background"}
"""What an object owns goes with it: the pods of a Job, its Workload and its PodGroup."""


class Target(NamedTuple):
    """What the command line names: `pods`, `pod x` or `pod/x`; `namespace` None means all of them."""

    kind: str
    name: str | None
    namespace: str | None


def apply(files: Sequence[str], namespace: str, server: str | None) -> int:
    """Creates or merges every object; goes on after a refusal and fails in the end."""
    manifests, client = load(files, namespace), Client(server)
    return _each(manifests, lambda one: _apply(client, one))


def get(target: Target, output: str, selector: str, server: str | None) -> int:
    kind, name = resolve(target.kind, target.name)
    client = Client(server)
    if name is not None and selector:
        raise Failure(f"-l {selector}: a selector picks among all {kind.plural}; leave it or the name out", USAGE)
    if name is not None and target.namespace is None and kind.namespaced:
        raise Failure(f"-A: {kind.singular}/{name} is in one namespace; name it with -n", USAGE)
    body = client.get(kind.path(target.namespace, name), {"labelSelector": selector} if selector else None)
    printing.show(kind, body, output, with_namespace=kind.namespaced and target.namespace is None)
    return 0


def delete(kind: str | None, names: Sequence[str], files: Sequence[str], namespace: str, server: str | None) -> int:
    """Deletes the named objects, or those that the files describe; fails in the end if one was refused."""
    if files and kind is not None:
        raise Failure("give either KIND NAME or -f FILE, not both", USAGE)
    if files:
        manifests, client = load(files, namespace), Client(server)
        return _each(manifests, lambda one: _delete(client, one.kind, one.namespace, one.name))
    if kind is None:
        raise Failure("name what to delete: KIND NAME, KIND/NAME, or -f FILE", USAGE)
    found, first = resolve(kind, names[0] if names else None)
    chosen = [*names] if names else [first] if first else []
    if not chosen:
        raise Failure(f"NAME is missing: say which of the {found.plural} to delete", USAGE)
    client = Client(server)
    return _each(chosen, lambda name: _delete(client, found, namespace, str(name)))


def resolve(kind: str, name: str | None) -> tuple[catalog.Kind, str | None]:
    """`pod/x` or `pod` and `x` to the kind and the name.

    Raises:
        Failure: the kind is unknown, or there are two names.
    """
    word, slash, inline = kind.partition("/")
    if slash and not inline:
        raise Failure(f"{kind}: the name after / is missing; write {word}/NAME", USAGE)
    if slash and name is not None:
        raise Failure(f"{kind} {name}: names two objects; write {word}/{inline} or {word} {name}", USAGE)
    try:
        return catalog.named(word), inline or name
    except ValueError as error:
        raise Failure(f"KIND: {error}", USAGE) from None


def _each(things: Sequence[Any], act: Any) -> int:
    code = 0
    for thing in things:
        try:
            print(act(thing), flush=True)
        except Failure as failure:
            where = f"{thing.source}: " if isinstance(thing, Manifest) else ""
            print(f"muster: {where}{failure}", file=sys.stderr, flush=True)
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


def _delete(client: Client, kind: catalog.Kind, namespace: str, name: str) -> str:
    _checked(client.call("DELETE", kind.path(namespace, name), query=WITH_DEPENDENTS))
    group = f".{kind.group}" if kind.group else ""
    return f"{kind.singular}{group}/{name} deleted"


def _checked(answer: Answer) -> Mapping[str, Any]:
    if not answer.ok:
        raise Failure(told(answer))
    body: Mapping[str, Any] = answer.body
    return body
