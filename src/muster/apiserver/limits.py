"""LimitRanges: what they give to containers that say nothing, and what they refuse.

Defaults come before mutating webhooks, the check after an object is known to be valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.api import catalog, quantity, requests
from muster.api.core import Container, Pod
from muster.api.defaults import pods
from muster.api.meta import Quantity
from muster.api.quotas import LimitRange, LimitRangeItem
from muster.apiserver import status
from muster.apiserver.log import Raw
from muster.apiserver.state import Call

Json = dict[str, Any]
Amounts = Mapping[str, Quantity]
Pair = tuple[Amounts, Amounts]
"""Requests and limits."""

RANGES = catalog.LIMIT_RANGE.plural
ANNOTATION = "kubernetes.io/limit-ranger"
"""What of a pod was not said by its author."""


def on_create(call: Call, made: Json) -> None:
    """Gives the containers of a new pod the requests and limits that they do not name."""
    if call.kind is not catalog.POD or not call.store.count(RANGES, call.namespace):
        return
    said: list[str] = []
    for limit in _of_type(call, "Container"):
        _complete(made, limit, said)
    if said:
        meta = made["metadata"]
        note = {ANNOTATION: f"LimitRanger plugin set: {'; '.join(said)}"}
        meta["annotations"] = {**(meta.get("annotations") or {}), **note}
        made["status"] = pods.first_status(made["spec"])


def check(call: Call, made: Raw, old: Raw | None) -> None:
    """Refuses an object with requests or limits that a range of its namespace does not allow.

    Of an update, only what it changes is looked at.

    Raises:
        Failure: 403, says all that is wrong.
    """
    if call.kind is catalog.POD and (old is None or call.subresource == "resize"):
        wrong = list(_pod_errors(call, made, old))
    elif call.kind is catalog.PERSISTENT_VOLUME_CLAIM and not call.subresource:
        wrong = list(_claim_errors(call, made, old))
    else:
        return
    if wrong:
        why = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
        raise status.forbidden(call.kind, made["metadata"]["name"], why)


def _of_type(call: Call, wanted: str) -> Iterator[LimitRangeItem]:
    """The items about a type, by the names of their ranges."""
    for raw in sorted(call.store.all(RANGES, call.namespace), key=lambda raw: str(raw["metadata"]["name"])):
        yield from (item for item in msgspec.convert(raw, LimitRange).spec.limits if item.type == wanted)


# --- defaults ----------------------------------------------------------------------------------------------------


def _complete(made: Json, limit: LimitRangeItem, said: list[str]) -> None:
    spec = dict(made["spec"])
    for field, word in (("initContainers", "init container"), ("containers", "container")):
        if spec.get(field):
            spec[field] = [_completed(container, limit, word, said) for container in spec[field]]
    made["spec"] = spec


def _completed(container: Json, limit: LimitRangeItem, word: str, said: list[str]) -> Json:
    resources = container.get("resources") or {}
    changed = False
    for field, given in (("requests", limit.default_request), ("limits", limit.default)):
        missing = {name: value for name, value in given.items() if name not in (resources.get(field) or {})}
        if missing:
            resources = {**resources, field: {**(resources.get(field) or {}), **missing}}
            said.append(f"{', '.join(sorted(missing))} {field[:-1]} for {word} {container.get('name', '')}")
            changed = True
    return {**container, "resources": resources} if changed else container


# --- what is refused ---------------------------------------------------------------------------------------------


def _pod_errors(call: Call, made: Raw, old: Raw | None) -> Iterator[str]:
    if not call.store.count(RANGES, call.namespace):
        return
    pod = msgspec.convert(made, Pod)
    was = msgspec.convert(old, Pod) if old is not None else None
    before = {container.name: _asked(container) for container in _containers(was)}
    for limit in _of_type(call, "Container"):
        for container in _containers(pod):
            yield from _errors(limit, _asked(container), before.get(container.name))
    for limit in _of_type(call, "Pod"):
        yield from _errors(limit, _whole(pod), None if was is None else _whole(was))


def _claim_errors(call: Call, made: Raw, old: Raw | None) -> Iterator[str]:
    for limit in _of_type(call, "PersistentVolumeClaim"):
        asked, before = _storage(made), _storage(old) if old is not None else None
        for name, least in _changed(limit.min, (asked, {}), None if before is None else (before, {})):
            yield from _too_little(limit.type, name, least, (asked, {}))
        for name, most in _changed(limit.max, (asked, {}), None if before is None else (before, {})):
            if name not in asked:
                yield f"maximum {name} usage per {limit.type} is {most}.  No request is specified"
            elif quantity.nanos(asked[name]) > quantity.nanos(most):
                yield f"maximum {name} usage per {limit.type} is {most}, but request is {asked[name]}"


def _storage(claim: Raw) -> Amounts:
    found: Amounts = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return found


def _containers(pod: Pod | None) -> tuple[Container, ...]:
    return (*pod.spec.containers, *pod.spec.init_containers) if pod is not None else ()


def _asked(container: Container) -> Pair:
    return container.resources.requests, container.resources.limits


def _whole(pod: Pod) -> Pair:
    """What the pod asks for as a whole."""
    asked, limited = requests.pod_requests(pod), requests.pod_limits(pod)
    return _written(asked), _written(limited)


def _written(amounts: Mapping[str, int]) -> Amounts:
    return {name: quantity.format_amount(name, value) for name, value in amounts.items()}


def _changed(bounds: Amounts, now: Pair, before: Pair | None) -> Iterator[tuple[str, Quantity]]:
    for name in sorted(bounds):
        if before is None or any(_differ(new.get(name), old.get(name)) for new, old in zip(now, before, strict=True)):
            yield name, bounds[name]


def _differ(new: Quantity | None, old: Quantity | None) -> bool:
    if new is None or old is None:
        return new is not old
    return quantity.nanos(new) != quantity.nanos(old)


def _errors(limit: LimitRangeItem, now: Pair, before: Pair | None) -> Iterator[str]:
    for name, least in _changed(limit.min, now, before):
        yield from _too_little(limit.type, name, least, now)
    for name, most in _changed(limit.max, now, before):
        yield from _too_much(limit.type, name, most, now)
    for name, ratio in _changed(limit.max_limit_request_ratio, now, before):
        yield from _too_far(limit.type, name, ratio, now)


def _too_little(of: str, name: str, least: Quantity, now: Pair) -> Iterator[str]:
    asked, limited = (part.get(name) for part in now)
    if asked is None:
        yield f"minimum {name} usage per {of} is {least}.  No request is specified"
    elif quantity.nanos(asked) < quantity.nanos(least):
        yield f"minimum {name} usage per {of} is {least}, but request is {asked}"
    elif limited is not None and quantity.nanos(limited) < quantity.nanos(least):
        yield f"minimum {name} usage per {of} is {least}, but limit is {limited}"


def _too_much(of: str, name: str, most: Quantity, now: Pair) -> Iterator[str]:
    asked, limited = (part.get(name) for part in now)
    if limited is None:
        yield f"maximum {name} usage per {of} is {most}.  No limit is specified"
    elif quantity.nanos(limited) > quantity.nanos(most):
        yield f"maximum {name} usage per {of} is {most}, but limit is {limited}"
    elif asked is not None and quantity.nanos(asked) > quantity.nanos(most):
        yield f"maximum {name} usage per {of} is {most}, but request is {asked}"


def _too_far(of: str, name: str, ratio: Quantity, now: Pair) -> Iterator[str]:
    asked, limited = (quantity.nanos(part[name]) if name in part else 0 for part in now)
    if not asked:
        yield f"{name} max limit to request ratio per {of} is {ratio}, but no request is specified or request is 0"
    elif not limited:
        yield f"{name} max limit to request ratio per {of} is {ratio}, but no limit is specified or limit is 0"
    elif limited * quantity.NANOS > quantity.nanos(ratio) * asked:
        yield f"{name} max limit to request ratio per {of} is {ratio}, but provided ratio is {limited / asked:f}"
