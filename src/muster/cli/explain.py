"""`muster explain`: one verdict per group, as the scheduler of the running server sees it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import catalog
from muster.cli import trees
from muster.cli.client import Answer, Client, told
from muster.cli.failure import USAGE, Failure
from muster.cli.kinds import Kinds, built_in
from muster.cli.objects import resolve
from muster.model.topology import detected_levels

Verdict = Mapping[str, Any]
OURS = "default-scheduler"
"""The schedulerName that Muster answers to."""
RESIZE_GATE = "InPlacePodVerticalScalingSchedulerPreemption"
SCHEDULED = (catalog.POD_GROUP, catalog.COMPOSITE_POD_GROUP, catalog.JOB, catalog.POD)


def explain(what: str | None, name: str | None, namespace: str | None, as_json: bool, server: str | None) -> int:
    """Prints why it waits, or that it does not; without a name, everything that waits (in that namespace)."""
    client = Client(server)
    if what is None:
        answer = _asked(client, "/muster/v1/queue")
        if not answer.ok:
            raise Failure(told(answer))
        waiting = answer.body["waiting"]
        waiting = [verdict for verdict in waiting if namespace in (None, verdict["namespace"])]
        print(json.dumps(waiting, indent=2) if as_json else _queue(waiting))
        return 0
    namespace = namespace or "default"
    kind, name = _target(client, what, name, namespace)
    answer = _asked(client, f"/muster/v1/why/{kind.kind}/{namespace}/{name}")
    if answer.status == 404:
        print(json.dumps(None) if as_json else _settled(client, kind, namespace, name))
        return 0
    print(json.dumps(answer.body, indent=2) if as_json else paragraph(answer.body))
    return 0


def _asked(client: Client, path: str) -> Answer:
    """What the scheduler says; of something that waits for nothing, 404.

    Raises:
        Failure: no scheduler answers there, or it refuses.
    """
    answer = client.call("GET", path)
    if answer.status == 404 and answer.body.get("kind") == "Status":  # the path is not served; else it is a message
        raise Failure(
            f"{client.server} is an API server alone: no scheduler of Muster's runs there that could tell. "
            "`muster up` has one; what another one says is in the events and conditions: `kubectl describe pod NAME`"
        )
    if not answer.ok and answer.status != 404:
        raise Failure(told(answer))
    return answer


def paragraph(verdict: Verdict) -> str:
    """The verdict, its numbers, its reasons and what would help."""
    lines = [str(verdict["sentence"])]
    lines += [f"  because  {reason['sentence']}" for reason in verdict.get("reasons") or []]
    lines += [_group(group) for group in verdict.get("groups") or []]
    lines += [f"  evicted  {account['sentence']}" for account in verdict.get("evictions") or []]
    lines += [f"  help     {remedy}" for remedy in verdict.get("remedies") or []]
    if verdict.get("pod"):
        lines.append(f"  pod {verdict['pod']['name']}: {verdict['pod']['sentence']}")
    return "\n".join(lines)


def _group(group: Verdict) -> str:
    """One group of a hierarchy, indented by its level."""
    domain = group.get("domain")
    where = f" ({domain['key'].rpartition('/')[2]} {domain['value']})" if domain else ""
    return (
        f"  {'  ' * group['depth']}{group['kind']} {group['name']}{where}: {group['sentence'] or 'has what it needs'}"
    )


def _queue(waiting: list[Verdict]) -> str:
    return "\n".join(map(paragraph, waiting)) if waiting else "nothing waits"


def _target(client: Client, what: str, name: str | None, namespace: str) -> tuple[catalog.Kind, str]:
    """The PodGroup or Pod that is meant; a Job stands for its PodGroup, a bare name for whatever is called so."""
    if name is None and "/" not in what and built_in(what) is None:
        kind, name = _called(client, what, namespace), what
    else:
        kind, name = resolve(what, name, Kinds(client))
    if name is None:
        raise Failure(f"{what}: the name is missing; write {what}/NAME", USAGE)
    if kind is catalog.JOB:
        return catalog.POD_GROUP, _group_of(client, namespace, name)
    if kind not in SCHEDULED:
        raise Failure(f"{what}: {kind.plural} are not scheduled; name a podgroup, a pod or a job", USAGE)
    return kind, name


def _called(client: Client, name: str, namespace: str) -> catalog.Kind:
    """The kind of the object of this name.

    Raises:
        Failure: nothing that is scheduled has this name.
    """
    for kind in SCHEDULED:
        if client.call("GET", kind.path(namespace, name)).ok:
            return kind
    raise Failure(
        f"no podgroup, job or pod in namespace {namespace} is called {name}; `muster explain` lists what waits"
    )


def _group_of(client: Client, namespace: str, job: str) -> str:
    uid = client.get(catalog.JOB.path(namespace, job))["metadata"]["uid"]
    for group in client.get(catalog.POD_GROUP.path(namespace))["items"]:
        if any(owner.get("uid") == uid for owner in group["metadata"].get("ownerReferences") or []):
            return str(group["metadata"]["name"])
    raise Failure(f"job/{job} has no PodGroup; its pods are scheduled one by one: name one as pod/NAME")


def _settled(client: Client, kind: catalog.Kind, namespace: str, name: str) -> str:
    """What to say of something that waits for nothing: where it runs, or that it does not exist."""
    answer: Answer = client.call("GET", kind.path(namespace, name))
    if not answer.ok:
        raise Failure(told(answer))
    if kind is catalog.POD:
        return f"Pod {namespace}/{name}: {_state_of_pod(answer.body)}"
    if kind is catalog.COMPOSITE_POD_GROUP:
        shown = trees.printed(client, kind, [name], namespace)
        return f"CompositePodGroup {namespace}/{name}: waits for nothing\n{shown}"
    members = _members(client, answer.body)
    said = f"PodGroup {namespace}/{name}: waits for nothing; {_state_of_group(answer.body, members)}"
    return "\n".join((said, *_domains(client, answer.body, members)))


def _members(client: Client, group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Its pods that count."""
    meta = group["metadata"]
    return [
        pod
        for pod in client.get(catalog.POD.path(meta["namespace"]))["items"]
        if (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == meta["name"]
        and "deletionTimestamp" not in pod["metadata"]
        and (pod.get("status") or {}).get("phase") != "Failed"
    ]


def _domains(client: Client, group: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each topology level, the key of its constraint included: how many of its pods are in which domain."""
    nodes = client.get(catalog.NODE.path(None))["items"]
    labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
    hosts = [labels[node] for pod in members if (node := pod["spec"].get("nodeName")) in labels]
    required = [one["key"] for one in (group["spec"].get("schedulingConstraints") or {}).get("topology") or []]
    lines = []
    for key in dict.fromkeys((*detected_levels(hosts), *required)) if hosts else ():
        counts = Counter(host.get(key, "(no label)") for host in hosts)
        told = ", ".join(f"{value} ({count})" for value, count in sorted(counts.items()))
        lines.append(f"  {key}: {told}{'; must be one' if key in required else ''}")
    return lines


def _state_of_group(group: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> str:
    """How many of its pods have a node, and why there are not more."""
    bound = sum(1 for pod in members if pod["spec"].get("nodeName"))
    said = f"{bound} of its pods have a node"
    minimum = (group["spec"]["schedulingPolicy"].get("gang") or {}).get("minCount", 0)
    if bound >= minimum:
        return said
    others = {pod["spec"].get("schedulerName", OURS) for pod in members if not pod["spec"].get("nodeName")} - {OURS}
    why = f'the others belong to the scheduler "{min(others)}"' if others else "pods are missing"
    return f"{said}, below its minimum of {minimum}: {why}"


def _resize_of_pod(pod: Mapping[str, Any]) -> str:
    """What its kubelet says of a resize that is not done, if there is one."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["status"] != "True":
            continue
        if condition["type"] == "PodResizePending":
            said = condition.get("message") or "no reason is given"
            if condition.get("reason") == "Infeasible":
                return f"; its resize cannot be done there: {said}; ask for less, or move it"
            return f"; its resize is deferred: {said}; nobody is evicted for it unless {RESIZE_GATE} is on"
        if condition["type"] == "PodResizeInProgress":
            return "; its resize is under way"
    return ""


def _state_of_pod(pod: Mapping[str, Any]) -> str:
    phase, node = (pod.get("status") or {}).get("phase"), pod["spec"].get("nodeName")
    scheduler = pod["spec"].get("schedulerName", OURS)
    if phase in ("Succeeded", "Failed"):
        return f"has ended ({phase})" + (f" on {node}" if node else "")
    if node:
        return f"runs on {node}" + _resize_of_pod(pod)
    if pod["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    if scheduler != OURS:
        return (
            f'belongs to the scheduler "{scheduler}" (spec.schedulerName), which is not Muster; Muster leaves it alone'
        )
    return "is about to be decided"
