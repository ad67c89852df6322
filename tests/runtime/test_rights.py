"""`deploy/rbac.yaml` grants what the scheduler asks for, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from scheduling_apart import apart, gang, pod, scheduler, until

from muster.plugins import default_profile
from muster.runtime.remote.refusals import resource_of
from muster.runtime.remote.rights import WRITES, lease_rules, rules
from muster.runtime.remote.session import Duty, wanted_resources

ROOT = Path(__file__).parents[2]


def manifests() -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text())}


def test_the_manifest_grants_what_is_asked_for():
    watched = wanted_resources(Duty({"muster": default_profile()}))
    assert sorted(map(str, manifests()["ClusterRole"]["rules"])) == sorted(map(str, rules(watched)))
    assert manifests()["Role"]["rules"] == lease_rules("muster-scheduler")


def test_every_write_that_the_scheduler_makes_is_granted_and_no_other():
    text = "".join(path.read_text() for path in (ROOT / "src/muster/scheduler").glob("*.py"))
    made = {name for name in re.findall(r"writes\.(\w+)\(", text) if name not in ("patch", "create")}
    assert made == {"bind", "delete"}, "a new way of writing needs a rule"
    patched = set(re.findall(r"writes\.patch\(([^,]+),", text))
    assert patched == {'"pods"', '"events"', "CLAIMS", "VOLUMES", "RESOURCE[group.kind]", "RESOURCE[entry.kind]",
                       "RESOURCE[record.entry.kind]", "sent.resource"}, "another resource that is patched"  # fmt: skip
    created = set(re.findall(r"writes\.create\(([\w.]+)", text))
    assert created <= {"self._event_body", "made_for"}, (
        "only Events and claims are created: add a rule to rights.WRITES"
    )
    deleted = set(re.findall(r"writes\.delete\(([^,]+),", text))
    assert deleted == {'"pods"'}, "only pods are deleted: add a rule to rights.WRITES, and deploy/rbac.yaml"
    granted = {(resource, verb) for _, resource, verbs in WRITES for verb in verbs}
    assert ("pods", "patch") not in granted, "pods are patched through their status only"
    assert ("pods/binding", "create") in granted and ("pods", "delete") in granted


def test_whatever_a_scheduler_asks_of_a_server_is_granted(tmp_path):
    everything = [*manifests()["ClusterRole"]["rules"], *manifests()["Role"]["rules"]]
    with apart() as served, scheduler(tmp_path, served.url):
        gang(served, "low", 4)
        until(lambda: served.bound("low") == 4, "bound")
        served.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        urgent = pod("urgent")
        urgent["spec"]["priorityClassName"] = "high"
        served.create("/api/v1/namespaces/default/pods", urgent)
        until(lambda: served.nodes_of().get("urgent", "") != "", "somebody was evicted for it")
        served.create("/api/v1/namespaces/default/pods", pod("too-large", gpus=9))
        until(lambda: any(path.endswith("too-large/status") for _, path in served.calls), "it is told that it waits")
        asked = {(verb, *resource_of(path)) for verb, path in served.calls if resource_of(path)[1]}
    assert ("delete", "", "pods") in asked and ("watch", "", "nodes") in asked
    granted = {
        (verb, group, resource)
        for rule in everything
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert asked <= granted
