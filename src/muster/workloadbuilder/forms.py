"""What is built, in other forms than dicts: typed records and YAML."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from muster.api.scheduling import CompositePodGroup, PodGroup, Workload
from muster.workloadbuilder.items import Block
from muster.workloadbuilder.materialize import BuildError

Record = Workload | PodGroup | CompositePodGroup
_RECORDS: dict[str, type[Record]] = {
    "Workload": Workload,
    "PodGroup": PodGroup,
    "CompositePodGroup": CompositePodGroup,
}


def as_record(body: Block) -> Record:
    """The same object as a frozen record with typed fields.

    Raises:
        BuildError: it is of no scheduling kind, or a field has the wrong type; the message names it.
    """
    kind = _RECORDS.get(body.get("kind", ""))
    if kind is None:
        raise BuildError(f"kind: {body.get('kind')!r} is none of {', '.join(_RECORDS)}")
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise BuildError(f"{body['kind']}: {error}") from None


def as_yaml(bodies: Iterable[Block]) -> str:
    """The objects as YAML documents, ready for `kubectl apply -f -`."""
    import yaml

    return "---\n".join(yaml.safe_dump(body, sort_keys=False, width=120) for body in bodies)
