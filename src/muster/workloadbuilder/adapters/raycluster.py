"""A RayCluster: the head and each worker group are gangs of their own minimums, all of them one gang.

Facts: ray.io/v1. A worker group has between minReplicas and maxReplicas replicas of numOfHosts pods each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muster.workloadbuilder.adapters import roles
from muster.workloadbuilder.adapters.fields import Field
from muster.workloadbuilder.adapters.view import Group, View
from muster.workloadbuilder.items import Block

HEAD = "headgroup"
"""What KubeRay calls the head's group in its label."""
UNLIMITED = 2**31 - 1


class _Workers(NamedTuple):
    name: str
    fewest: int
    most: int
    source: Field


def view(cluster: Field, related: Sequence[Block] = ()) -> View:
    spec = cluster / "spec"
    head = spec / "headGroupSpec"
    if not head.given:
        spec.errors.append(head.place.required("a cluster has a head"))
    scaled = (spec / "enableInTreeAutoscaling").truth()
    groups = [_workers(each, scaled) for each in (spec / "workerGroupSpecs").items()]
    taken = [HEAD]
    for each in groups:
        roles.unlike(taken, each.source / "groupName", each.name)
        taken.append(each.name)
    templates = [head / "template", *(each.source / "template" for each in groups)]
    priority = roles.one_priority(templates)
    nothing = "it is suspended; groups are made when it is resumed" if (spec / "suspend").truth() else ""
    nothing = nothing or roles.own_group(templates)
    if nothing:
        return View(None, nothing=nothing)
    alive = [each for each in groups if each.fewest]
    notes = [
        f"worker group {each.name} may be empty: its pods are in no group and scheduled one by one"
        for each in groups
        if not each.fewest
    ]
    leaves = [roles.leaf(HEAD, roles.Wish(1, priority_class=priority), head / "template" / "metadata")]
    for each in alive:
        wish = roles.Wish(each.fewest, priority_class=priority)
        leaves.append(roles.leaf(each.name, wish, each.source / "template" / "metadata"))
    roles.check_number(leaves, spec / "workerGroupSpecs")
    root = roles.free_name("cluster", taken)
    wish = roles.Wish(len(leaves), priority_class=priority)
    item = roles.tree(root, wish, cluster / "metadata", leaves)
    name = (cluster / "metadata" / "name").text()
    made = [
        Group(root, f"the head and {len(alive)} worker groups start together, or none does"),
        Group(HEAD, "the head is one pod", _pods(name, HEAD), parent=(root, None)),
        *(Group(each.name, _why(each), _pods(name, each.name), parent=(root, None)) for each in alive),
    ]
    return View(item, made, notes)


def _workers(source: Field, scaled: bool) -> _Workers:
    name = roles.checked_name(source / "groupName")
    least, most = (source / "minReplicas").number(0), (source / "maxReplicas").number(UNLIMITED)
    if least > most:
        (source / "minReplicas").wrong(f"must not be more than maxReplicas ({most})")
    wanted = least if scaled else min(max((source / "replicas").number(least), least), most)
    hosts = (source / "numOfHosts").number(1, 1)
    if (source / "suspend").truth():
        wanted = 0
    return _Workers(name, wanted * hosts, most * hosts, source)


def _why(workers: _Workers) -> str:
    if workers.most in (workers.fewest, UNLIMITED):
        return f"the cluster starts with its {workers.fewest} pods"
    return f"the cluster starts with {workers.fewest} of at most {workers.most} pods; the others join as there is room"


def _pods(cluster: str, group: str) -> Block:
    return {"matchLabels": {"ray.io/cluster": cluster, "ray.io/group": group}}
