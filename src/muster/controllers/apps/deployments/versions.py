"""The ReplicaSets of a Deployment: one for each pod template that it has had, numbered by revisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api.object import Object
from muster.controllers.apps.care import reference_to
from muster.controllers.apps.names import canonical, template_hash
from muster.controllers.pod_status import deleted

Json = Mapping[str, Any]
HASH = "pod-template-hash"
"""Label of pods and ReplicaSets, and part of their selector."""
_PREFIX = "deployment.kubernetes.io/"
REVISION, HISTORY = f"{_PREFIX}revision", f"{_PREFIX}revision-history"
DESIRED, MOST = f"{_PREFIX}desired-replicas", f"{_PREFIX}max-replicas"
"""Annotations of a ReplicaSet: its numbers, the present one and earlier ones; the Deployment's size when it was scaled
last, and that size with its surge."""
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MOST})


class Version(NamedTuple):
    """One ReplicaSet. `size` is what it should have, `there` what it has or is about to have."""

    object: Object
    size: int
    there: int
    ready: int
    available: int
    terminating: int
    settled: bool
    """Whether its numbers are those of its present size, and not of an earlier one."""

    @classmethod
    def of(cls, obj: Object) -> Version:
        status, size = obj.raw.get("status") or {}, obj.raw["spec"].get("replicas") or 0
        ready, available, terminating = (
            status.get(f"{each}Replicas") or 0 for each in ("ready", "available", "terminating")
        )
        settled = (status.get("observedGeneration") or 0) >= (obj.meta.get("generation") or 0)
        return cls(obj, size, max(size, status.get("replicas") or 0), ready, available, terminating, settled)

    @property
    def uid(self) -> str:
        return self.object.uid

    @property
    def age(self) -> tuple[str, str]:
        """Old ones first."""
        return str(self.object.meta.get("creationTimestamp") or ""), self.object.name

    @property
    def revision(self) -> int:
        return _number(self.annotation(REVISION)) or 0

    @property
    def kept_available(self) -> int:
        """Available pods that are left once it has its size: those that are not available go first."""
        return min(self.available, self.size)

    def annotation(self, name: str) -> str:
        return str((self.object.meta.get("annotations") or {}).get(name) or "")

    def number(self, name: str) -> int | None:
        """The number in an annotation."""
        return _number(self.annotation(name))

    def is_idle(self) -> bool:
        """It has no pods, wants none, and its controller knows that."""
        return self.settled and not self.there and not deleted(self.object)

    def is_empty(self) -> bool:
        """Not even a pod that is being deleted is left."""
        return self.settled and not self.there and not self.terminating


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def sort_out(deployment: Json, found: Iterable[Object]) -> tuple[Version | None, list[Version]]:
    """The version with the present template (the oldest, should there be several), and the others, old ones first."""
    versions = sorted((Version.of(each) for each in found), key=lambda version: version.age)
    wanted = deployment["spec"].get("template") or {}
    new = next((each for each in versions if _same(each, wanted, _unlabelled)), None)
    if new is None:
        new = next((each for each in versions if _same(each, wanted, _plain)), None)
    return new, [each for each in versions if each is not new]


def _same(version: Version, template: Json, read: Callable[[Json], Json]) -> bool:
    return read(version.object.raw["spec"].get("template") or {}) == read(template)


def _unlabelled(template: Json) -> Json:
    """The template without the label that a controller has added."""
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    return {**template, "metadata": {**meta, "labels": labels}}


def _plain(template: Json) -> Json:
    """The same without what says nothing: what typed clients write of a template is not another one."""
    plain: Json = canonical(_unlabelled(template))
    return plain


def hash_of(deployment: Json) -> str:
    """What the next version is named after."""
    collisions = (deployment.get("status") or {}).get("collisionCount") or 0
    return template_hash(_plain(deployment["spec"].get("template") or {}), collisions)


def next_revision(old: Sequence[Version]) -> int:
    return 1 + max((each.revision for each in old), default=0)


def new_version(deployment: Json, hashed: str, size: int, most: int, revision: int) -> dict[str, Any]:
    """A ReplicaSet of the present template. `most`: replicas and surge."""
    meta, spec = deployment["metadata"], deployment["spec"]
    template, selector = spec.get("template") or {}, spec.get("selector") or {}
    given = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), HASH: hashed}
    made: dict[str, Any] = {
        "replicas": size,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: hashed}},
        "template": {**template, "metadata": {**given, "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{hashed}",
            "namespace": meta.get("namespace") or "default",
            "labels": labels,
            "annotations": {**_copied(deployment), **sizes(spec.get("replicas") or 0, most), REVISION: str(revision)},
            "ownerReferences": [reference_to(deployment, "Deployment")],
        },
        "spec": made,
    }


def sizes(desired: int, most: int) -> dict[str, str]:
    """Annotations of what a ReplicaSet was scaled for."""
    return {DESIRED: str(desired), MOST: str(most)}


def _copied(deployment: Json) -> dict[str, str]:
    annotations = deployment["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in _NOT_COPIED}


def brought_up(deployment: Json, new: Version, revision: int) -> dict[str, Any]:
    """What the newest version lacks of its Deployment, as a merge patch: annotations, its number, minReadySeconds.

    A version that is new again gets a new number and keeps its earlier ones on record.
    """
    there = new.object.meta.get("annotations") or {}
    annotations = {key: value for key, value in _copied(deployment).items() if there.get(key) != value}
    if new.revision < revision:
        annotations[REVISION] = str(revision)
        if REVISION in there:
            annotations[HISTORY] = ",".join(filter(None, (there.get(HISTORY), there[REVISION])))
    patch: dict[str, Any] = {"metadata": {"annotations": annotations}} if annotations else {}
    wanted = deployment["spec"].get("minReadySeconds") or 0
    if (new.object.raw["spec"].get("minReadySeconds") or 0) != wanted:
        patch["spec"] = {"minReadySeconds": wanted}
    return patch


def outlived(deployment: Json, old: Sequence[Version]) -> list[Version]:
    """Versions beyond the history limit, those of low numbers first. One that still has pods stays, and counts."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    living = [each for each in old if not deleted(each.object)]
    if limit is None or len(living) <= limit:
        return []
    ranked = sorted(living, key=lambda each: (each.revision, each.age))
    return [each for each in ranked[: len(living) - limit] if each.is_idle()]
