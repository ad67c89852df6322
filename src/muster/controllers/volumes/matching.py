"""Which volume fits a claim: pure rules on typed views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muster.api import quantity, selectors
from muster.api.core import NodeSelector, NodeSelectorTerm
from muster.api.object import Object
from muster.api.selectors import Requirement
from muster.api.storage import BETA_STORAGE_CLASS, VOLUME_PROTECTION, PersistentVolume, PersistentVolumeClaim
from muster.controllers.pod_status import deleted

Key = tuple[str, str]
"""A claim: namespace and name."""


def volume_of(obj: Object) -> PersistentVolume:
    return obj.view(PersistentVolume)


def claim_of(obj: Object) -> PersistentVolumeClaim:
    return obj.view(PersistentVolumeClaim)


def class_of(obj: Object) -> str:
    """The name of the class a volume or claim is of, "" for none: an old annotation goes before the field."""
    spec = obj.raw.get("spec") or {}
    name = (obj.meta.get("annotations") or {}).get(BETA_STORAGE_CLASS) or spec.get("storageClassName")
    return str(name or "")


def size_of(amounts: Mapping[str, str | int | float]) -> int:
    """Storage in billionths of a byte, to compare with."""
    return quantity.nanos(amounts.get("storage", 0))


def owner_of(volume: Object) -> Key | None:
    """The claim that a volume is reserved for or bound to."""
    reference = volume_of(volume).spec.claim_ref
    return None if reference is None else (reference.namespace, reference.name)


def belongs(volume: Object, claim: Object) -> bool:
    """Whether the volume is reserved for this claim; a reservation without a uid is for whichever has the name."""
    reference = volume_of(volume).spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.uid)


def best(volumes: Iterable[Object], claim: Object, node: Object | None) -> Object | None:
    """The first of the volumes, which come in order of preference, that fits the claim. With a `node`, a free one must
    be reachable from there."""
    for volume in volumes:
        if misfit(volume, claim) is None and (belongs(volume, claim) or suits(volume, claim, node)):
            return volume
    return None


def suits(volume: Object, claim: Object, node: Object | None) -> bool:
    """Whether a free volume is one of those that the claim selects, and is where it is needed."""
    return is_free(volume) and _selected(volume, claim) and (node is None or reaches(volume, node))


def preference(volume: Object) -> tuple[int, int, str]:
    """Volumes with the fewest access modes go first, then small ones."""
    spec = volume_of(volume).spec
    return len(spec.access_modes), size_of(spec.capacity), volume.name


def misfit(volume: Object, claim: Object) -> str | None:
    """Why the volume can't serve the claim at all; None if it can."""
    spec, wanted = volume_of(volume).spec, claim_of(claim).spec
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if deleted(volume):
        return "it is being deleted"
    if size_of(spec.capacity) < size_of(wanted.resources.requests):
        return "requested PV is too small"
    if (spec.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem"):
        return "incompatible volumeMode"
    if (spec.volume_attributes_class_name or "") != (wanted.volume_attributes_class_name or ""):
        return "volumeAttributesClassName does not match"
    return None if set(wanted.access_modes) <= set(spec.access_modes) else "incompatible accessMode"


def is_free(volume: Object) -> bool:
    """Whether anyone may have it. One that is not protected yet is about to be: whoever took it now would be late."""
    protected = VOLUME_PROTECTION in (volume.meta.get("finalizers") or ())
    return protected and owner_of(volume) is None and volume_of(volume).status.phase == "Available"


def _selected(volume: Object, claim: Object) -> bool:
    selector = claim_of(claim).spec.selector
    return selector is None or selectors.of(selector).matches(volume.meta.get("labels") or {})


def reaches(volume: Object, node: Object) -> bool:
    """Whether the volume's node affinity admits the node."""
    affinity = volume_of(volume).spec.node_affinity
    return affinity is None or affinity.required is None or admits(affinity.required, node)


def admits(selector: NodeSelector, node: Object) -> bool:
    return any(_holds(term, node) for term in selector.node_selector_terms)


def _holds(term: NodeSelectorTerm, node: Object) -> bool:
    """All requirements; a term without any holds nowhere."""
    labels, fields = node.meta.get("labels") or {}, {"metadata.name": node.name}
    asked = [(entry, labels) for entry in term.match_expressions] + [(entry, fields) for entry in term.match_fields]
    return bool(asked) and all(
        Requirement(entry.key, entry.operator, entry.values).holds(values) for entry, values in asked
    )
