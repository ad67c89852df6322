"""A JobSet: a group per child Job, all of them one gang unless they start one after another.

Facts: jobset.x-k8s.io/v1alpha2. Each replicated job has `replicas` Jobs of `parallelism` pods; the annotation
`alpha.jobset.sigs.k8s.io/exclusive-topology` on the JobSet or a replicated job's template wants a domain per Job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.workloadbuilder.adapters import roles
from muster.workloadbuilder.adapters.fields import Field
from muster.workloadbuilder.adapters.view import Group, View
from muster.workloadbuilder.items import Block, WorkloadItem

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LABEL = "jobset.sigs.k8s.io"
ENDED = ("Completed", "Failed")


@dataclass(slots=True)
class _Role:
    name: str
    replicas: int
    pods: int
    topology: str
    source: Field
    depends: list[str] = field(default_factory=list)


def view(jobset: Field, related: Sequence[Block] = ()) -> View:
    return view_as(jobset, (jobset / "metadata" / "name").text())


def view_as(jobset: Field, name: str, parallel: dict[str, int] | None = None) -> View:
    """The view of a JobSet of that name; `parallel` replaces the number of pods of some roles."""
    spec = jobset / "spec"
    found = [_role(each, jobset, parallel or {}) for each in (spec / "replicatedJobs").items()]
    seen: list[str] = []
    for each in found:
        roles.unlike(seen, each.source / "name", each.name)
        seen.append(each.name)
    if not found:
        spec.errors.append((spec / "replicatedJobs").place.required("name at least one replicated job"))
    _check_depends(found)
    ordered = _ordered(spec, found)
    templates = [each.source / "template" / "spec" / "template" for each in found]
    nothing = _nothing(jobset, templates)
    alive = [each for each in found if each.replicas and each.pods]
    priority = roles.one_priority(templates)
    if nothing or not alive:
        return View(None, nothing=nothing or "it has no pods")
    leaves = [_leaf(each, priority) for each in alive]
    if len(alive) == 1 and alive[0].replicas == 1:
        only = alive[0]
        item = roles.leaf(only.name, _wish(only, priority), _nearest(only, jobset))
        return View(item, [_group(only, name, None, None)], _notes(alive))
    return _whole(jobset, name, alive, leaves, ordered, priority)


def _whole(
    jobset: Field, name: str, alive: list[_Role], leaves: list[WorkloadItem], ordered: str, priority: str
) -> View:
    roles.check_number(leaves, jobset / "spec" / "replicatedJobs")
    jobs = sum(each.replicas for each in alive)
    root = roles.free_name("all", [each.name for each in alive])
    wish = roles.Wish(jobs, "basic" if ordered else "gang", priority_class=priority)
    item = roles.tree(root, wish, jobset / "metadata", leaves)
    if ordered and item.user.policy is not None and "gang" in (item.user.policy.composite or {}):
        (jobset / "metadata" / "annotations").entry(roles.POLICY).wrong(
            f"the jobs cannot be one gang: {ordered}, so the later ones have no pods when the first must start"
        )
    why = (
        f"its jobs start one after another ({ordered}): each is a gang, all together are none"
        if ordered
        else f"all {jobs} jobs start together, or none does"
    )
    groups = [Group(root, why)]
    for each in alive:
        for index in range(each.replicas):
            groups.append(_group(each, name, None if each.replicas == 1 else index, (root, None)))
    return View(item, groups, _notes(alive))


def _role(source: Field, jobset: Field, parallel: dict[str, int]) -> _Role:
    name = roles.checked_name(source / "name")
    job = source / "template" / "spec"
    width = (job / "parallelism").number(1)
    completions = job / "completions"
    pods = min(width, completions.number(width)) if completions.given else width
    own = (source / "template" / "metadata" / "annotations").entry(EXCLUSIVE)
    general = (jobset / "metadata" / "annotations").entry(EXCLUSIVE)
    topology = roles.topology_key(own) if own.given else roles.topology_key(general)
    depends = [(each / "name").name() for each in (source / "dependsOn").items()]
    return _Role(
        name,
        (source / "replicas").number(1, most=roles.MOST_GROUPS),
        parallel.get(name, pods),
        topology,
        source,
        depends,
    )


def _check_depends(found: list[_Role]) -> None:
    before: list[str] = []
    for each in found:
        for index, name in enumerate(each.depends):
            if name and name not in before:
                (((each.source / "dependsOn").items()[index]) / "name").wrong(
                    "must name a replicated job that stands before this one"
                )
        before.append(each.name)


def _ordered(spec: Field, found: list[_Role]) -> str:
    """Why the jobs do not all have pods at the same time; "" if they do."""
    order = spec / "startupPolicy" / "startupPolicyOrder"
    if order.text("AnyOrder") not in ("AnyOrder", "InOrder"):
        order.wrong("must be AnyOrder or InOrder")
    if order.text() == "InOrder" and len(found) > 1:
        return "startupPolicyOrder is InOrder"
    waiting = next((each for each in found if each.depends), None)
    return f"{waiting.name} depends on {waiting.depends[0]}" if waiting else ""


def _nothing(jobset: Field, templates: list[Field]) -> str:
    spec, status = jobset / "spec", jobset / "status"
    if (status / "terminalState").text() in ENDED:
        return f"it has ended ({(status / 'terminalState').text()})"
    if (spec / "suspend").truth():
        return "it is suspended; groups are made when it is resumed"
    return roles.own_group(templates)


def _wish(role: _Role, priority: str) -> roles.Wish:
    return roles.Wish(role.pods, topology=role.topology, priority_class=priority)


def _leaf(role: _Role, priority: str) -> WorkloadItem:
    return roles.leaf(role.name, _wish(role, priority), role.source / "template" / "metadata")


def _nearest(role: _Role, jobset: Field) -> Field:
    """Of a JobSet with one Job: the metadata that says something about scheduling, the Job's before the JobSet's."""
    own = role.source / "template" / "metadata"
    said = (own / "annotations").mapping()
    return own if any(key in said for key in roles.SCHEDULING) else jobset / "metadata"


def _group(role: _Role, jobset: str, index: int | None, parent: tuple[str, int | None] | None) -> Group:
    labels = {f"{LABEL}/jobset-name": jobset, f"{LABEL}/replicatedjob-name": role.name}
    if index is not None:
        labels[f"{LABEL}/job-index"] = str(index)
    where = f", in one domain of {role.topology} (exclusive-topology)" if role.topology else ""
    job = f"job {role.name}" if index is None else f"job {index} of {role.name}"
    return Group(role.name, f"{job} has {role.pods} pods at a time{where}", {"matchLabels": labels}, index, parent)


def _notes(alive: list[_Role]) -> list[str]:
    notes = ["a restart makes pods with the same labels: the groups stay"]
    if any(each.topology for each in alive):
        notes.append(
            "one domain per job is a rule of its group; that no other job is in there stays the JobSet's affair"
        )
    return notes
