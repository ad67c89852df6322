"""What a call selects: by namespace, labels and fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from muster.api import selectors
from muster.api.meta import LabelSelector
from muster.apiserver import status
from muster.apiserver.log import Raw
from muster.apiserver.state import Call
from muster.apiserver.watch import Selection


def of_query(call: Call, *, namespace: bool = False) -> Selection | None:
    """The selection of `labelSelector` and `fieldSelector`, on request of the path's namespace too; None takes all.

    Raises:
        Failure: 400, a selector that cannot be read.
    """
    by_label, by_field = _parsed(call)
    space = call.namespace if namespace else ""
    if not by_label and not by_field:
        return (lambda raw: raw["metadata"].get("namespace") == space) if space else None

    def chosen(raw: Raw) -> bool:
        meta = raw["metadata"]
        return (
            (not space or meta.get("namespace") == space)
            and by_label.matches(meta.get("labels") or {})
            and by_field.matches(call.kind.shown(raw))
        )

    return chosen


def _parsed(call: Call) -> tuple[selectors.Selector, selectors.FieldSelector]:
    query = call.request.query
    try:
        by_label = selectors.labels(query.get("labelSelector", ""))
    except ValueError as problem:
        raise status.bad_request(f"labelSelector: {problem}") from None
    try:
        return by_label, selectors.fields(query.get("fieldSelector", ""), call.kind.selectable)
    except ValueError as problem:
        raise status.bad_request(f"fieldSelector: {problem}") from None


def selector_matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether the selector in an object's spec chooses these labels; an empty one chooses all."""
    return selectors.of(msgspec.convert(selector, LabelSelector)).matches(labels)
