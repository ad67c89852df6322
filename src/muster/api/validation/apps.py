"""Rules for Services and for the kinds that keep replicas of a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from muster.api import apps, selectors
from muster.api.core import PodTemplate
from muster.api.gates import FeatureGates
from muster.api.meta import LabelSelector, ObjectMeta, Part
from muster.api.validation import checks, meta, names, pod, small, volumes
from muster.api.validation.checks import Errors, Format
from muster.api.validation.field import ROOT, SPEC, FieldError, Path
from muster.api.volumes import ClaimVolume, Volume

Raw = Mapping[str, Any]
P = TypeVar("P", bound=Part)
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MANAGEMENT = ("OrderedReady", "Parallel")
_RETENTION = ("Delete", "Retain")
_STATEFUL_CHANGES = (
    "replicas", "ordinals", "template", "update_strategy", "revision_history_limit", "min_ready_seconds",
    "persistent_volume_claim_retention_policy",
)  # fmt: skip
_STATEFUL_FIXED = (
    "only replicas, ordinals, template, updateStrategy, revisionHistoryLimit, minReadySeconds and "
    "persistentVolumeClaimRetentionPolicy may be changed"
)
_TEMPLATE = SPEC / "template"


def rules(
    struct: type[P], spec: Callable[[P, P | None, FeatureGates], Errors], name: Format = names.dns_subdomain
) -> Callable[[Raw, Raw | None, FeatureGates], Errors]:
    """A validator: metadata, then `spec(new, old, gates)` on typed views."""

    def validate(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
        view = checks.typed(new, struct)
        if isinstance(view, FieldError):
            return [view]
        before = checks.typed(old, struct) if old is not None else None
        stored = before if isinstance(before, struct) else None
        metadata: ObjectMeta = view.metadata  # type: ignore[attr-defined]
        was: ObjectMeta | None = stored.metadata if stored else None  # type: ignore[attr-defined]
        return meta.metadata(metadata, was, name=name) + spec(view, stored, gates)

    return validate


def _service(new: apps.Service, old: apps.Service | None, gates: FeatureGates) -> Errors:
    spec = new.spec
    errors = checks.labels(spec.selector, SPEC / "selector")
    errors += checks.one_of(spec.type, SPEC / "type", _TYPES)
    if spec.type == "ExternalName":
        return errors + checks.text(spec.external_name, SPEC / "externalName", names.dns_subdomain)
    if not spec.ports and spec.cluster_ip != "None":
        errors.append((SPEC / "ports").required("a Service without ports must have clusterIP None"))
    seen: set[str] = set()
    for i, port in enumerate(spec.ports):
        at = SPEC / "ports" // i
        errors += checks.in_range(port.port, at / "port", 1, 65535)
        errors += checks.one_of(port.protocol, at / "protocol", _PROTOCOLS)
        if len(spec.ports) > 1 or port.name:
            errors += checks.text(port.name, at / "name", names.dns_label)
        if port.name in seen:
            errors.append((at / "name").duplicate(port.name, "port names must be unique in the Service"))
        seen.add(port.name)
    return errors


def _replication_controller(
    new: apps.ReplicationController, old: apps.ReplicationController | None, gates: FeatureGates
) -> Errors:
    spec = new.spec
    errors = checks.labels(spec.selector, SPEC / "selector")
    if not spec.selector:
        errors.append((SPEC / "selector").required("say which pods belong to it"))
    return errors + _kept(spec.replicas, spec.template, LabelSelector(match_labels=spec.selector), gates)


def _replica_set(new: apps.ReplicaSet, old: apps.ReplicaSet | None, gates: FeatureGates) -> Errors:
    errors = _selected(new.spec.selector) + checks.at_least(new.spec.min_ready_seconds, SPEC / "minReadySeconds", 0)
    errors += _kept(new.spec.replicas, new.spec.template, new.spec.selector, gates)
    return errors + (checks.immutable_fields(new.spec, old.spec, SPEC, ("selector",)) if old else [])


def _stateful_set(new: apps.StatefulSet, old: apps.StatefulSet | None, gates: FeatureGates) -> Errors:
    spec = new.spec
    errors = _selected(spec.selector) + checks.at_least(spec.min_ready_seconds, SPEC / "minReadySeconds", 0)
    errors += checks.at_least(spec.revision_history_limit, SPEC / "revisionHistoryLimit", 0)
    errors += checks.one_of(spec.pod_management_policy, SPEC / "podManagementPolicy", _MANAGEMENT)
    errors += _stateful_strategy(spec.update_strategy, SPEC / "updateStrategy")
    if spec.ordinals is not None:
        errors += checks.at_least(spec.ordinals.start, SPEC / "ordinals" / "start", 0)
    if spec.service_name and (old is None or spec.service_name != old.spec.service_name):
        errors += checks.formatted(spec.service_name, SPEC / "serviceName", names.dns_subdomain)
    errors += _claims(spec)
    errors += _kept(spec.replicas, _with_claims(spec), spec.selector, gates)
    if old is not None and _without_changes(spec) != _without_changes(old.spec):
        errors.append(SPEC.forbidden(_STATEFUL_FIXED))
    return errors


def _stateful_strategy(given: apps.StatefulStrategy, path: Path) -> Errors:
    errors = checks.one_of(given.type, path / "type", ("OnDelete", "RollingUpdate"))
    rolling, at = given.rolling_update, path / "rollingUpdate"
    if rolling is None:
        return errors
    if given.type == "OnDelete":
        return [*errors, at.invalid(rolling, "has no meaning with the type OnDelete")]
    errors += checks.at_least(rolling.partition, at / "partition", 0)
    errors += small.count_or_percent(rolling.max_unavailable, at / "maxUnavailable")
    if rolling.max_unavailable in (0, "0%"):
        errors.append(
            (at / "maxUnavailable").invalid(rolling.max_unavailable, "must be at least 1, or nothing could be updated")
        )
    return errors


def _claims(spec: apps.StatefulSetSpec) -> Errors:
    """Templates of claims, and what becomes of the claims."""
    errors: Errors = []
    for i, claim in enumerate(spec.volume_claim_templates):
        at = SPEC / "volumeClaimTemplates" // i
        errors += checks.text(claim.metadata.name, at / "metadata" / "name", names.dns_label)
        errors += volumes.claim_spec(claim.spec, at / "spec")
    policy, at = spec.persistent_volume_claim_retention_policy, SPEC / "persistentVolumeClaimRetentionPolicy"
    if policy is not None:
        errors += checks.one_of(policy.when_deleted, at / "whenDeleted", _RETENTION)
        errors += checks.one_of(policy.when_scaled, at / "whenScaled", _RETENTION)
    return errors


def _with_claims(spec: apps.StatefulSetSpec) -> PodTemplate:
    """The template as pods have it: a volume for each template of claims, in place of one of the same name."""
    known = {claim.metadata.name for claim in spec.volume_claim_templates}
    made = {
        name: Volume(name=name, persistent_volume_claim=ClaimVolume(claim_name=name))
        for name in sorted(known)
        if name and names.dns_label(name) is None
    }
    if not made:
        return spec.template
    given = [made.pop(volume.name, volume) for volume in spec.template.spec.volumes]
    inner = msgspec.structs.replace(spec.template.spec, volumes=(*given, *made.values()))
    return msgspec.structs.replace(spec.template, spec=inner)


def _without_changes(spec: apps.StatefulSetSpec) -> apps.StatefulSetSpec:
    """What of it may never change."""
    blank = apps.StatefulSetSpec()
    return msgspec.structs.replace(spec, **{name: getattr(blank, name) for name in _STATEFUL_CHANGES})


def _deployment(new: apps.Deployment, old: apps.Deployment | None, gates: FeatureGates) -> Errors:
    spec = new.spec
    errors = _selected(spec.selector) + checks.at_least(spec.min_ready_seconds, SPEC / "minReadySeconds", 0)
    errors += checks.at_least(spec.revision_history_limit, SPEC / "revisionHistoryLimit", 0)
    deadline, at = spec.progress_deadline_seconds, SPEC / "progressDeadlineSeconds"
    errors += checks.at_least(deadline, at, 0)
    if deadline is not None and 0 <= deadline <= spec.min_ready_seconds:
        errors.append(at.invalid(deadline, "must be greater than minReadySeconds"))
    errors += _strategy(spec.strategy, SPEC / "strategy", ("Recreate", "RollingUpdate"), any_surge=True)
    errors += _kept(spec.replicas, spec.template, spec.selector, gates)
    return errors + (checks.immutable_fields(spec, old.spec, SPEC, ("selector",)) if old else [])


def _daemon_set(new: apps.DaemonSet, old: apps.DaemonSet | None, gates: FeatureGates) -> Errors:
    spec = new.spec
    errors = _selected(spec.selector) + checks.at_least(spec.min_ready_seconds, SPEC / "minReadySeconds", 0)
    errors += checks.at_least(spec.revision_history_limit, SPEC / "revisionHistoryLimit", 0)
    errors += _strategy(spec.update_strategy, SPEC / "updateStrategy", ("OnDelete", "RollingUpdate"))
    rolling, none = spec.update_strategy.rolling_update, (0, "0%", None)
    if rolling is not None and rolling.max_surge not in none and rolling.max_unavailable not in none:
        at = SPEC / "updateStrategy" / "rollingUpdate" / "maxSurge"
        errors.append(at.invalid(rolling.max_surge, "needs `maxUnavailable` 0"))
    errors += _kept(None, spec.template, spec.selector, gates)
    return errors + (checks.immutable_fields(spec, old.spec, SPEC, ("selector",)) if old else [])


def _strategy(given: apps.Strategy, path: Path, types: tuple[str, ...], *, any_surge: bool = False) -> Errors:
    """`any_surge`: a Deployment may have several times its pods for a while."""
    errors = checks.one_of(given.type, path / "type", types)
    rolling, at = given.rolling_update, path / "rollingUpdate"
    if rolling is None:
        return errors
    if given.type == "Recreate":
        return [*errors, at.forbidden("may not be specified when strategy `type` is 'Recreate'")]
    errors += small.count_or_percent(rolling.max_unavailable, at / "maxUnavailable")
    surge = small.count_or_percent(rolling.max_surge, at / "maxSurge")
    errors += surge if not any_surge or not _is_percentage(rolling.max_surge) else []
    none = (0, "0%", None)
    if given.type == "RollingUpdate" and rolling.max_unavailable in none and rolling.max_surge in none:
        errors.append((at / "maxUnavailable").invalid(rolling.max_unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors


def _controller_revision(
    new: apps.ControllerRevision, old: apps.ControllerRevision | None, gates: FeatureGates
) -> Errors:
    errors: Errors = []
    if new.data is None:
        errors.append((ROOT / "data").required("say what the revision restores"))
    errors += checks.at_least(new.revision or 0, ROOT / "revision", 0)
    return errors + (checks.unchanged(new.data, old.data, ROOT / "data") if old else [])


def _is_percentage(value: int | str | None) -> bool:
    return isinstance(value, str) and value[:-1].isdecimal() and value[-1] == "%"


def _selected(selector: LabelSelector | None) -> Errors:
    at = SPEC / "selector"
    if selector is None:
        return [at.required("say which pods belong to it")]
    if not selector.match_labels and not selector.match_expressions:
        return [at.invalid({}, "an empty selector would mean every pod")]
    return checks.selector(selector, at)


def _kept(replicas: int | None, template: PodTemplate, selector: LabelSelector | None, gates: FeatureGates) -> Errors:
    """How many pods of what kind: they are selected, and start again whenever they end."""
    errors = checks.at_least(replicas, SPEC / "replicas", 0)
    errors += pod.pod_template(template, _TEMPLATE, gates)
    labels = template.metadata.labels
    if selector is not None and not selectors.of(selector).matches(labels):
        at = _TEMPLATE / "metadata" / "labels"
        errors.append(at.invalid(dict(labels), "`selector` does not match template `labels`"))
    if template.spec.restart_policy != "Always":
        at = _TEMPLATE / "spec" / "restartPolicy"
        errors.append(at.not_supported(template.spec.restart_policy, ("Always",)))
    if template.spec.active_deadline_seconds is not None:
        at = _TEMPLATE / "spec" / "activeDeadlineSeconds"
        errors.append(at.forbidden("these pods run until they are deleted, without a deadline"))
    return errors


service = rules(apps.Service, _service, names.dns_label)
replication_controller = rules(apps.ReplicationController, _replication_controller)
replica_set = rules(apps.ReplicaSet, _replica_set)
stateful_set = rules(apps.StatefulSet, _stateful_set)
deployment = rules(apps.Deployment, _deployment)
daemon_set = rules(apps.DaemonSet, _daemon_set)
controller_revision = rules(apps.ControllerRevision, _controller_revision)
