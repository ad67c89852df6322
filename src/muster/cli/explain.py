"""`muster explain`: one verdict per group, as the scheduler of the running server sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muster.api import catalog
from muster.cli.client import Answer, Client, told
from muster.cli.failure import USAGE, Failure
from muster.cli.objects import resolve

Verdict = Mapping[str, Any]


def explain(what: str | None, namespace: str, as_json: bool, server: str | None) -> int:
    """Prints why it waits, or that it does not; without a name, everything that waits."""
    client = Client(server)
    if what is None:
        waiting = client.get("/muster/v1/queue")["waiting"]
        print(json.dumps(waiting, indent=2) if as_json else _queue(waiting))
        return 0
    kind, name = _target(client, what, namespace)
    answer = client.call("GET", f"/muster/v1/why/{kind.kind}/{namespace}/{name}")
    if answer.status == 404:
        print(json.dumps(None) if as_json else _settled(client, kind, namespace, name))
        return 0
    if not answer.ok:
        raise Failure(told(answer))
    print(json.dumps(answer.body, indent=2) if as_json else paragraph(answer.body))
    return 0


def paragraph(verdict: Verdict) -> str:
    """The verdict, its numbers, its reasons and what would help."""
    lines = [str(verdict["sentence"])]
    lines += [f"  because  {reason['sentence']}" for reason in verdict.get("reasons") or []]
    lines += [f"  help     {remedy}" for remedy in verdict.get("remedies") or []]
    if verdict.get("pod"):
        lines.append(f"  this pod {verdict['pod']['sentence']}")
    return "\n".join(lines)


def _queue(waiting: list[Verdict]) -> str:
    return "\n".join(map(paragraph, waiting)) if waiting else "nothing waits"


def _target(client: Client, what: str, namespace: str) -> tuple[catalog.Kind, str]:
    """The PodGroup or Pod that is meant; a Job stands for its PodGroup."""
    kind, name = resolve(what, None)
    if name is None:
        raise Failure(f"{what}: write KIND/NAME, for example podgroup/{what}", USAGE)
    if kind is catalog.JOB:
        return catalog.POD_GROUP, _group_of(client, namespace, name)
    if kind not in (catalog.POD, catalog.POD_GROUP):
        raise Failure(f"{what}: {kind.plural} are not scheduled; name a podgroup, a pod or a job", USAGE)
    return kind, name


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
        node = answer.body["spec"].get("nodeName")
        return f"Pod {namespace}/{name}: " + (f"runs on {node}" if node else "is about to be decided")
    bound = sum(
        1
        for pod in client.get(catalog.POD.path(namespace))["items"]
        if (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == name and pod["spec"].get("nodeName")
    )
    return f"PodGroup {namespace}/{name}: waits for nothing; {bound} of its pods have a node"
