"""Get, list and watch."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from muster.api.calls import Response
from muster.api.catalog import Kind
from muster.api.machine import ADDED
from muster.api.validation.field import FieldError, Path
from muster.apiserver import selection, status
from muster.apiserver.log import Raw, WatchEvent
from muster.apiserver.state import Call
from muster.apiserver.watch import BOOKMARK, Watch

Json = dict[str, Any]

EXACT, NOT_OLDER = "Exact", "NotOlderThan"
_MATCH = "resourceVersionMatch"
_INITIAL = "sendInitialEvents"


NOW = -1


class Continue(msgspec.Struct, frozen=True, array_like=True):
    """Where a list goes on: the revision of its first page, and the last object it has told."""

    revision: int
    """NOW: the rest of the list as it is when it is asked for."""
    namespace: str
    name: str


def get(call: Call) -> Response:
    """GET of one object, or of a subresource that shows its parent."""
    _revision(call)
    return Response(200, call.stored())


def collection(call: Call) -> Response | Watch:
    """GET of a collection: a list, or with `watch=true` a watch."""
    return watch(call) if call.flag("watch") else list_objects(call)


def selected(call: Call) -> list[Raw]:
    """The objects of a collection that the selectors choose, by namespace and name."""
    chosen = selection.of_query(call)
    found = map(call.kind.shown, call.store.all(call.kind.resource, call.namespace or None))
    return sorted((raw for raw in found if chosen is None or chosen(raw)), key=_place)


def _place(raw: Raw) -> tuple[str, str]:
    meta = raw["metadata"]
    return meta.get("namespace", ""), meta["name"]


def list_objects(call: Call) -> Response:
    """A list in order of namespace and name. With `limit` in pages, all of them of one revision."""
    limit = call.number("limit") or 0
    match = _match(call)
    token = call.request.query.get("continue")
    if token:
        return _page(call, limit, _decoded(token))
    wanted = _revision(call)
    if match == EXACT:
        return _page(call, limit, Continue(wanted, "", ""))
    return _listed(call, selected(call), call.store.revision, limit)


def _match(call: Call, *, watching: bool = False) -> str:
    """How exactly the revision of the query is meant; "" if it does not say.

    Raises:
        Failure: 422, it is unknown, or there is no revision that it could be about.
    """
    query, path = call.request.query, Path(_MATCH)
    match, initial = query.get(_MATCH, ""), _INITIAL in query
    known = (NOT_OLDER,) if watching else (EXACT, NOT_OLDER)
    error = None
    if match and match not in known:
        error = path.not_supported(match, known)
    elif initial and not watching:
        error = Path(_INITIAL).forbidden("sendInitialEvents is forbidden for list")
    elif initial and not match:
        error = path.forbidden(f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}")
    elif match and watching and not initial:
        error = path.forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    elif match and query.get("continue"):
        error = path.forbidden("resourceVersionMatch is forbidden when continue is provided")
    elif match and not watching:
        error = _match_of_list(match, query.get("resourceVersion", ""), path)
    if error is not None:
        raise status.unprocessable_options(error)
    return match


def _match_of_list(match: str, revision: str, path: Path) -> FieldError | None:
    if not revision:
        return path.forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match == EXACT and revision == "0":
        return path.forbidden('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    return None


def _page(call: Call, limit: int, after: Continue) -> Response:
    """What follows `after` in the list as it was at that revision."""
    if after.revision == NOW:
        after = Continue(call.store.revision, after.namespace, after.name)
    found = call.store.at(call.kind.resource, after.revision) if after.revision <= call.store.revision else None
    if found is None:
        raise _forgotten(call, after)
    chosen, space = selection.of_query(call), call.namespace
    rest = [
        raw
        for raw in map(call.kind.shown, found)
        if _place(raw) > (after.namespace, after.name)
        and (not space or _place(raw)[0] == space)
        and (chosen is None or chosen(raw))
    ]
    return _listed(call, sorted(rest, key=_place), after.revision, limit)


def _listed(call: Call, found: list[Raw], revision: int, limit: int) -> Response:
    meta: Json = {"resourceVersion": str(revision)}
    if limit and len(found) > limit:
        last = Continue(revision, *_place(found[limit - 1]))
        meta["continue"] = _encoded(last)
        if not any(call.request.query.get(name) for name in ("labelSelector", "fieldSelector")):
            meta["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    body = {"kind": call.kind.list_kind, "apiVersion": call.kind.api_version, "metadata": meta, "items": found}
    return Response(200, body)


def _forgotten(call: Call, after: Continue) -> status.Failure:
    if "continue" in call.request.query:
        return status.expired(
            "The provided continue parameter is too old to display a consistent list result: list again without it, or "
            "go on with the continue of this answer, which lists the rest as it is then",
            _encoded(Continue(NOW, after.namespace, after.name)),
        )
    return status.expired(
        f"the state of revision {after.revision} is no longer kept: list again without continue and resourceVersion"
    )


def _encoded(place: Continue) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()


def _decoded(token: str) -> Continue:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=Continue)
    except (ValueError, msgspec.MsgspecError):
        raise status.bad_request(
            "invalid continue token: continue key is not valid: want the metadata.continue of an earlier list"
        ) from None


def _revision(call: Call) -> int:
    """The resourceVersion of the query; 0 for none.

    Raises:
        Failure: 400 no number, 504 of the future.
    """
    wanted = call.number("resourceVersion") or 0
    if wanted > call.store.revision:
        raise status.revision_too_large(wanted, call.store.revision)
    return wanted


def watch(call: Call) -> Watch:
    """A watch from a revision on; without one, of everything there is first.

    Raises:
        Failure: 410, changes after that revision have been forgotten.
    """
    wanted = _revision(call)
    _match(call, watching=True)
    call.number("timeoutSeconds")  # whoever carries the stream keeps the time; a wrong one is refused here
    chosen = selection.of_query(call, namespace=True)
    log = call.store.log(call.kind.resource)
    initial = call.flag("sendInitialEvents")
    if wanted and not initial:
        position = log.position(wanted)
        if position is None:
            raise status.expired(f"too old resource version: {wanted} ({log.lost})")
        told = []
    else:
        position = log.end
        revision = call.store.revision
        told = [WatchEvent(ADDED, raw, revision) for raw in selected(call)]
    stream = Watch(
        call.store,
        call.kind,
        position,
        selects=chosen,
        initial=told,
        bookmarks=call.flag("allowWatchBookmarks"),
    )
    if type(call.kind) is not Kind:
        stream.shape = lambda event: event.object if event.type == BOOKMARK else call.kind.shown(event.object)
    if initial and stream.bookmarks:
        stream.tell(stream.bookmark(initial_end=True))
    return stream
