"""All adapters, and what comes of a manifest: its objects, what is wrong with it, and what follows from a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api.validation import FieldError, Path
from muster.api.validation.names import dns_subdomain
from muster.workloadbuilder.adapters import annotated, job, jobset, lws, raycluster, trainjob
from muster.workloadbuilder.adapters.fields import Field
from muster.workloadbuilder.adapters.view import (
    UNKNOWN_UID,
    Compiled,
    Group,
    Made,
    Owner,
    View,
    compile_view,
    name_of,
)
from muster.workloadbuilder.items import Block
from muster.workloadbuilder.materialize import BuildError

Read = Callable[[Field, Sequence[Block]], View]


_DELEGATED = "its group is made from the Workload of its controller"


def _job(field: Field, related: Sequence[Block]) -> View:
    """The Job through its own adapter, once the fields that it reads have the right types (B18-B22)."""
    spec = field / "spec"
    scheduling, template = spec / "scheduling", spec / "template"
    scheduling.mapping()
    (template / "spec" / "schedulingGroup" / "podGroupName").text()
    (template / "spec" / "priorityClassName").text()
    pods = (spec / "parallelism").number(1)
    for reference in (field / "metadata" / "ownerReferences").items():
        reference.mapping()
    for key in (job.GROUP_TEMPLATE, job.PARENT):
        (field / "metadata" / "annotations").entry(key).text()
    ended = {"Complete", "Failed"} & {
        (each / "type").text()
        for each in (field / "status" / "conditions").items()
        if (each / "status").text() == "True"
    }
    suspended = (spec / "suspend").truth()
    if field.errors:
        return View(None, nothing="it cannot be read")
    nothing = f"it has ended ({min(ended)})" if ended else ""
    nothing = nothing or ("it is suspended; groups are made when it is resumed" if suspended else "")
    if not nothing and (own := job.own_group(field.value)):
        nothing = f"spec.template.spec.schedulingGroup.podGroupName names the group {own} already"
    if not nothing and (owner := job.controller_of(field.value)):
        delegates = job.delegated_template(field.value) is not None
        nothing = (
            _DELEGATED
            if delegates
            else f"it belongs to {owner.get('kind')} {owner.get('name')}, which says how it is scheduled"
        )
    if nothing:
        return View(None, nothing=nothing)
    name = (field / "metadata" / "name").text()
    gang = (scheduling / "schedulingPolicy" / "gang").given
    why = f"spec.scheduling asks for a gang, of {pods} pods at a time" if gang else "pods are scheduled one by one"
    group = Group(job.template_name(field.value), why, {"matchLabels": {"batch.kubernetes.io/job-name": name}})
    return View(job.item_for(field.value), [group], root="spec.scheduling")


ADAPTERS: Mapping[tuple[str, str], Read] = {
    ("batch", "Job"): _job,
    ("jobset.x-k8s.io", "JobSet"): jobset.view,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): lws.view,
    ("apps", "StatefulSet"): annotated.view,
    ("apps", "Deployment"): annotated.view,
    ("ray.io", "RayCluster"): raycluster.view,
    ("trainer.kubeflow.org", "TrainJob"): trainjob.view,
}
"""API group and kind -> how it is read. Another kind needs one function and one line."""


def adapter_of(manifest: Block) -> Read | None:
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str) or "/" not in version:
        return None
    return ADAPTERS.get((version.split("/")[0], kind))


def compile_manifest(manifest: Block, related: Sequence[Block] = (), namespace: str = "default") -> Compiled:
    """The scheduling objects of one manifest, or its errors. Nothing that is given is changed.

    Args:
        related: other objects that it refers to, such as the runtime of a TrainJob.
        namespace: of a manifest that names none.

    Raises:
        KeyError: no adapter knows this kind.
    """
    read = adapter_of(manifest)
    if read is None:
        raise KeyError(f"{manifest.get('apiVersion')} {manifest.get('kind')}")
    errors: list[FieldError] = []
    root = Field(manifest, None, errors)
    meta = root / "metadata"
    owner = Owner(
        manifest["apiVersion"],
        manifest["kind"],
        (meta / "name").name(),
        (meta / "uid").text(UNKNOWN_UID),
        (meta / "namespace").text(namespace),
    )
    for field, value in (("name", owner.name), ("namespace", owner.namespace)):
        if value and (problem := dns_subdomain(value)):
            (meta / field).wrong(problem)
    if not (root / "spec").given:
        errors.append(Path("spec").required())
    if errors:
        return Compiled(errors=errors)
    if read is _job and not (meta / "uid").given:
        root = Field({**manifest, "metadata": {**meta.mapping(), "uid": owner.uid}}, None, errors)
    view = read(root, related)
    if errors:
        return Compiled(errors=_unique(errors))
    return _delegated(root, related) if view.nothing == _DELEGATED else compile_view(view, owner)


def _delegated(field: Field, related: Sequence[Block]) -> Compiled:
    """The group of a Job whose controller has a Workload and lets the Job's group be made from it (B22)."""
    owner = job.controller_of(field.value) or {}
    where = (field / "metadata" / "annotations").entry(job.GROUP_TEMPLATE)
    workload = next((each for each in related if _is_workload_of(each, owner)), None)
    if workload is None:
        where.wrong(f"the Workload of {owner.get('kind')} {owner.get('name')} is not in these files: give it as well")
        return Compiled(errors=field.errors)
    name = name_of(workload["metadata"]["name"], where.text(), None)
    try:
        group = job.compile_delegated_group(field.value, workload, name)
    except BuildError as error:
        where.wrong(str(error))
        return Compiled(errors=field.errors)
    why = f"its controller lets it have a group of the template {where.text()}"
    labels = {"batch.kubernetes.io/job-name": (field / "metadata" / "name").text()}
    return Compiled([Made(group, why, {"matchLabels": labels})])


def _is_workload_of(manifest: Block, owner: Block) -> bool:
    if manifest.get("kind") != "Workload":
        return False
    errors: list[FieldError] = []
    workload = Field(manifest, None, errors)
    reference = workload / "spec" / "controllerRef"
    named = (reference / "kind").text(), (reference / "name").text()
    return named == (owner.get("kind"), owner.get("name")) and bool((workload / "metadata" / "name").text())


class Changes(NamedTuple):
    """What has to be done so that the objects of an old manifest become those of a new one.

    `replaced` are those that differ in what cannot be changed: to be deleted and created again.
    """

    created: list[Mapping[str, Any]]
    updated: list[Mapping[str, Any]]
    replaced: list[Mapping[str, Any]]
    deleted: list[Mapping[str, Any]]


def changes(old: Compiled, new: Compiled) -> Changes:
    """Follows scaling, suspending, resuming, restarting and completion. With errors in the new one nothing is done."""
    if new.errors:
        return Changes([], [], [], [])
    before = {_key(body): body for body in old.objects}
    after = {_key(body): body for body in new.objects}
    differ = [body for key, body in after.items() if key in before and before[key] != body]
    return Changes(
        [body for key, body in after.items() if key not in before],
        [body for body in differ if _without_counts(body) == _without_counts(before[_key(body)])],
        [body for body in differ if _without_counts(body) != _without_counts(before[_key(body)])],
        [body for key, body in reversed(before.items()) if key not in after],
    )


def _key(body: Mapping[str, Any]) -> tuple[str, str, str]:
    return body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]


def _without_counts(value: Any) -> Any:
    """Without the minimums of gangs of pods, the only thing that may change (V28)."""
    if isinstance(value, Mapping):
        return {key: _without_counts(each) for key, each in value.items() if key != "minCount"}
    return [_without_counts(each) for each in value] if isinstance(value, list) else value


def _unique(errors: list[FieldError]) -> list[FieldError]:
    seen: dict[tuple[str, str], FieldError] = {}
    for error in errors:
        seen.setdefault((error.field, error.message), error)
    return list(seen.values())
