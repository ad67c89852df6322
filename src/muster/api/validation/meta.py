"""Rules for metadata, on create and on update (V32: labels, annotations and finalizers may change)."""

from __future__ import annotations

from muster.api.meta import ObjectMeta, OwnerReference
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors, Format
from muster.api.validation.field import METADATA

ANNOTATIONS_SIZE = 256 * 1024
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


def metadata(
    meta: ObjectMeta, old: ObjectMeta | None, *, namespaced: bool = True, name: Format = names.dns_subdomain
) -> Errors:
    """Every rule for an object's metadata; `name` is the format of the kind's names."""
    errors = _names(meta, name, namespaced)
    if meta.labels:
        errors += checks.labels(meta.labels, METADATA / "labels")
    if meta.annotations:
        errors += _annotations(meta.annotations)
    if meta.owner_references:
        errors += _owners(meta.owner_references)
    for i, finalizer in enumerate(meta.finalizers):
        errors += _finalizer(finalizer, i)
    if old is not None:
        errors += _update(meta, old)
    return errors


def _names(meta: ObjectMeta, form: Format, namespaced: bool) -> Errors:
    errors: Errors = []
    if meta.name:
        errors += checks.formatted(meta.name, METADATA / "name", form)
    elif not meta.generate_name:
        errors.append((METADATA / "name").required("name or generateName is required"))
    if meta.generate_name:
        # Something is appended, so what must be valid is a prefix: a trailing dash or dot is fine.
        errors += checks.formatted(meta.generate_name + "x", METADATA / "generateName", form)
    if not namespaced:
        if meta.namespace:
            errors.append((METADATA / "namespace").forbidden("not allowed on this type"))
    elif meta.namespace:
        errors += checks.formatted(meta.namespace, METADATA / "namespace", names.dns_label)
    return errors


def _annotations(annotations: dict[str, str]) -> Errors:
    # Annotation keys may be written in any case.
    errors = checks.label_keys((key.lower() for key in annotations), METADATA / "annotations")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_SIZE:
        errors.append((METADATA / "annotations").too_long(ANNOTATIONS_SIZE))
    return errors


def _owners(owners: tuple[OwnerReference, ...]) -> Errors:
    errors: Errors = []
    path = METADATA / "ownerReferences"
    for i, owner in enumerate(owners):
        at = path // i
        for field, value in (
            ("apiVersion", owner.api_version),
            ("kind", owner.kind),
            ("name", owner.name),
            ("uid", owner.uid),
        ):
            if not value:
                errors.append((at / field).required("must not be empty"))
    controllers = [f"{owner.kind} {owner.name}" for owner in owners if owner.controller]
    if len(controllers) > 1:
        errors.append(path.invalid(controllers, "only one reference can have controller set to true"))
    return errors


def _finalizer(value: str, index: int) -> Errors:
    path = METADATA / "finalizers" // index
    if problem := names.label_key(value):
        return [path.invalid(value, problem)]
    if "/" not in value and value not in _STANDARD_FINALIZERS:
        return [path.invalid(value, "name is neither a standard finalizer name nor is it fully qualified")]
    return []


def _update(meta: ObjectMeta, old: ObjectMeta) -> Errors:
    """What identifies an object stays; fields left empty keep their value."""
    errors = checks.immutable_fields(meta, old, METADATA, ("name", "namespace"))
    for field, new_value, old_value in (
        ("uid", meta.uid, old.uid),
        ("creationTimestamp", meta.creation_timestamp, old.creation_timestamp),
        ("deletionTimestamp", meta.deletion_timestamp, old.deletion_timestamp),
    ):
        if new_value and new_value != old_value:
            errors.append((METADATA / field).invalid(new_value, checks.IMMUTABLE))
    if old.deletion_timestamp and (added := [name for name in meta.finalizers if name not in old.finalizers]):
        errors.append(
            (METADATA / "finalizers").forbidden(
                f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
            )
        )
    return errors
