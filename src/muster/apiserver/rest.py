"""Which function answers which call."""

from __future__ import annotations

from collections.abc import Callable

from muster.api.calls import Request, Response
from muster.api.instant import Instant
from muster.api.validation.field import Path
from muster.apiserver import (
    apply,
    binding,
    deletion,
    discovery,
    eviction,
    ownership,
    paths,
    reads,
    reviews,
    scale,
    status,
    tables,
    writes,
)
from muster.apiserver.state import Call, State
from muster.apiserver.watch import Watch

HERE = "muster"
"""The manager of what is written without a name."""
Verb = Callable[[Call], Response | Watch]


def _delete_collection(call: Call) -> Response:
    return deletion.delete_collection(call, reads.selected(call))


def _of_kubelet(call: Call) -> Response:
    """What only a kubelet could answer, of an object that is there."""
    call.stored()
    raise status.not_implemented(
        f"{call.subresource} of {call.kind.singular} {call.name} is not served by hollow nodes: nothing runs on them"
    )


COLLECTION: dict[str, Verb] = {"GET": reads.collection, "POST": writes.create, "DELETE": _delete_collection}
_ONE_BY_ONE: dict[str, Verb] = {"GET": reads.collection, "POST": writes.create}
"""What a collection takes whose objects are only deleted one by one."""
OBJECT: dict[str, Verb] = {
    "GET": reads.get,
    "PUT": writes.update,
    "PATCH": writes.apply_patch,
    "DELETE": deletion.delete,
}
_QUESTION: dict[str, Verb] = {"POST": reviews.answer}
_OF_PARENT: dict[str, Verb] = {"GET": reads.get, "PUT": writes.update, "PATCH": writes.apply_patch}
_EVERY = ("GET", "POST", "PUT", "PATCH", "DELETE")
SUBRESOURCE: dict[str, dict[str, Verb]] = {
    "status": _OF_PARENT,
    "resize": _OF_PARENT,
    "finalize": {"PUT": writes.update},
    "binding": {"POST": binding.bind},
    "eviction": {"POST": eviction.evict},
    "scale": {"GET": scale.get, "PUT": scale.update, "PATCH": scale.apply_patch},
    **{name: dict.fromkeys(_EVERY, _of_kubelet) for names in paths.KUBELET.values() for name in names},
}


def answer(state: State, request: Request, now: Instant) -> Response | Watch:
    """Carries out one call.

    Raises:
        Failure: it is refused.
    """
    form = tables.accepted(request.accept) if request.accept else tables.PLAIN
    if form is None and not discovery.serves_binary(request):
        raise status.not_acceptable(request.accept)
    target = paths.parse(request.path, state.store)
    if target is None:
        return discovery.discover(request, state.served())
    if not target.kind.served(state.gates):
        why = f"{target.kind.plural} are served with feature gate {target.kind.gate} on, and it is off"
        raise status.no_such_path(f"the server could not find the requested resource: {why}")
    call = Call(state, request, now, *target)
    if target.kind.deprecation:
        call.warnings.append(target.kind.deprecation)
    verbs = _verbs(target)
    verb = verbs.get("GET" if request.method == "HEAD" else request.method)
    if verb is None:
        allowed = ", ".join(verbs)
        raise status.method_not_allowed(f"{request.path} does not take {request.method}, only {allowed}")
    state.store.author = _author(call) if verb in _CLAIMING else None
    try:
        made = verb(call)
    except status.Failure as failure:
        failure.headers = {**failure.headers, **_warned(call)}
        raise
    if form is not None and form.name:
        made = tables.shaped(call, form, made)
    if call.warnings and isinstance(made, Response):
        made = Response(made.status, made.body, {**made.headers, **_warned(call)})
    return made


def _warned(call: Call) -> dict[str, str]:
    return {"Warning": ", ".join(map(_warning, call.warnings))} if call.warnings else {}


_CLAIMING = (writes.create, writes.update, writes.apply_patch, scale.update, scale.apply_patch)


def _author(call: Call) -> ownership.Author:
    """Who owns what this call changes: as it says itself, or as its user agent begins."""
    manager = call.request.query.get("fieldManager")
    if manager is None or manager == "":
        manager = call.request.user_agent.partition("/")[0][: ownership.LONGEST_NAME] or HERE
    elif len(manager) > ownership.LONGEST_NAME:
        raise status.bad_options(call.request.method, Path("fieldManager").too_long(ownership.LONGEST_NAME))
    elif not manager.isprintable():
        error = Path("fieldManager").invalid(manager, "must consist of printable characters")
        raise status.bad_options(call.request.method, error)
    return apply.author(call, manager, ownership.UPDATE)


def _verbs(target: paths.Target) -> dict[str, Verb]:
    if target.kind.asked:
        return _QUESTION
    if target.subresource:
        return SUBRESOURCE[target.subresource]
    if target.name:
        return OBJECT
    return COLLECTION if target.kind.deletes_collections else _ONE_BY_ONE


def _warning(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(letter if letter.isprintable() and letter.isascii() else "?" for letter in quoted)
    return f'299 - "{shown}"'
