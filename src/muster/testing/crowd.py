"""Pods of a few roles on a few nodes, and what they mean to each other: a question for `solver` and `turns`.

Shares no code with engine or plugins. Alike members of one group are a role; a placement says how many of each role go
to each node. All rules are those of `company`, written down role by role instead of pod by pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from muster.model.keys import Key
from muster.model.neighbours import PodSelector, SpreadConstraint
from muster.model.records import NodeRecord, PodRecord, QueueEntry
from muster.testing import company, oracle

Placement = dict[tuple[int, int], int]
"""(role, node) -> how many; no zeros."""
Domain = frozenset[int]


@dataclass(frozen=True, slots=True)
class Role:
    """Alike pending members of one group: equal in class, and the same selectors mean them."""

    group: Key | None
    pods: tuple[PodRecord, ...]

    @property
    def first(self) -> PodRecord:
        return self.pods[0]


class Apart(NamedTuple):
    """In each of these domains, pods of one of the two roles only; of one role with itself, at most one pod."""

    one: int
    other: int
    domains: tuple[Domain, ...]


class Near(NamedTuple):
    """Required affinity of a role; equal ones of several roles are one rule."""

    domains: tuple[Mapping[int, Domain], ...]
    """By term: node -> the nodes of its domain; nodes without the label are missing."""
    mates: frozenset[int]
    """Roles that all its terms mean."""
    running: tuple[int, ...]
    """Pods by node that all its terms mean."""
    own: bool
    """Whether it means itself, and may so be the first."""


class Even(NamedTuple):
    """A hard spread constraint of a role."""

    domain: Mapping[int, str]
    """Of every node with the label."""
    counting: frozenset[int]
    crowd: Mapping[str, int]
    """Running pods that it means, in every domain that counts."""
    mates: frozenset[int]
    own: bool
    skew: int
    enough_domains: bool


@dataclass(frozen=True)
class Crowd:
    """One question: roles, nodes, and every rule that a placement has to keep."""

    nodes: tuple[NodeRecord, ...]
    roles: tuple[Role, ...]
    free: tuple[Mapping[str, int], ...]
    """By node."""
    allowed: tuple[frozenset[int], ...]
    """By role: nodes that nothing but other members, room and order can close to it."""
    apart: tuple[Apart, ...]
    near: Mapping[int, Near]
    even: Mapping[int, tuple[Even, ...]]

    @property
    def ordered(self) -> bool:
        """Whether the order in which members are placed can make a difference."""
        return bool(self.near or self.even)


def crowd_of(world: company.World, entry: QueueEntry) -> Crowd:
    """Spells out the pending members of an entry."""
    nodes = tuple(world.nodes)
    roles = _roles(world, entry)
    index = {node.name: n for n, node in enumerate(nodes)}
    free = [dict(node.allocatable) for node in nodes]
    for pod in world.bound:
        for name, amount in pod.usage:
            room = free[index[pod.node or ""]]
            room[name] = room.get(name, 0) - amount
    near, even = {}, {}
    for r, role in enumerate(roles):
        demands = role.first.cls.demands
        if demands is not None and demands.affinity:
            near[r] = _near(world, nodes, roles, role.first)
        hard = tuple(_even(world, nodes, roles, role.first, one) for one in company.hard(role.first))
        if hard:
            even[r] = hard
    allowed = tuple(frozenset(n for n in range(len(nodes)) if _is_open(world, nodes[n], role.first)) for role in roles)
    return Crowd(nodes, roles, tuple(free), allowed, tuple(_apart(world, nodes, roles)), near, even)


def passes(crowd: Crowd, there: Placement, r: int, n: int) -> bool:
    """Whether one more pod of the role may go to the node with `there` in place."""
    if n not in crowd.allowed[r] or not _has_room(crowd, there, r, n):
        return False
    for rule in crowd.apart:
        if r in (rule.one, rule.other):
            enemy = rule.other if r == rule.one else rule.one
            if any(n in domain and any(there.get((enemy, m)) for m in domain) for domain in rule.domains):
                return False
    if not all(_stays_even(one, there, n) for one in crowd.even.get(r, ())):
        return False
    return r not in crowd.near or _has_company(crowd.near[r], there, n)


def _has_room(crowd: Crowd, there: Placement, r: int, n: int) -> bool:
    wanted = dict(crowd.roles[r].first.cls.requests)
    for (other, node), count in there.items():
        if node == n:
            for name, amount in crowd.roles[other].first.cls.requests:
                if name in wanted:
                    wanted[name] += amount * count
    return all(amount <= crowd.free[n].get(name, 0) for name, amount in wanted.items())


def _stays_even(even: Even, there: Placement, n: int) -> bool:
    crowd = dict(even.crowd)
    for (r, node), count in there.items():
        if r in even.mates and node in even.counting:
            crowd[even.domain[node]] += count
    fewest = min(crowd.values()) if crowd and even.enough_domains else 0
    return n in even.domain and crowd.get(even.domain[n], 0) + even.own - fewest <= even.skew


def _has_company(near: Near, there: Placement, n: int) -> bool:
    if any(n not in domains for domains in near.domains):
        return False
    mates = {node for (r, node), count in there.items() if count and r in near.mates}
    mates |= {node for node, count in enumerate(near.running) if count}
    if all(mates & domains[n] for domains in near.domains):
        return True
    return near.own and not any(node in domains for node in mates for domains in near.domains)


def _roles(world: company.World, entry: QueueEntry) -> tuple[Role, ...]:
    selectors = tuple(dict.fromkeys(_selectors((*entry.pods, *world.bound))))
    found: dict[tuple[Key | None, object], list[PodRecord]] = {}
    leaves = entry.tree.leaves() if entry.tree is not None else ()
    groups: list[tuple[Key | None, Sequence[PodRecord]]] = [(leaf.record.key, leaf.pending) for leaf in leaves]
    for group, pods in groups or [(None, entry.pods)]:
        for pod in pods:
            meant = tuple(company.means(world, selector, pod) for selector in selectors)
            found.setdefault((group, (pod.cls, meant)), []).append(pod)
    return tuple(Role(group, tuple(pods)) for (group, _), pods in found.items())


def _selectors(pods: Iterable[PodRecord]) -> Iterator[PodSelector]:
    for demands in dict.fromkeys(pod.cls.demands for pod in pods if pod.cls.demands is not None):
        yield from (selector for selection in demands.selections() for selector in selection)


def _domains(nodes: Sequence[NodeRecord], key: str) -> dict[int, Domain]:
    """Of every node with the label."""
    found: dict[str, set[int]] = {}
    for n, node in enumerate(nodes):
        if key in node.labels:
            found.setdefault(node.labels[key], set()).add(n)
    return {n: frozenset(domain) for domain in found.values() for n in domain}


def _is_open(world: company.World, node: NodeRecord, pod: PodRecord) -> bool:
    """Whether node and running pods let it in, whoever else is placed; only affinity and spread may still change."""
    if not oracle.admits(node, pod.cls):
        return False
    here = [other for other in world.bound if other.node == node.name]
    if any(oracle.clash(a, b) for other in here for a in other.cls.host_ports for b in pod.cls.host_ports):
        return False
    demands = pod.cls.demands
    for other, its in world.there:
        for term in demands.anti_affinity if demands is not None else ():
            if company.together(term.topology_key, node, its) and company.means(world, term.selector, other):
                return False
        for term in other.cls.demands.anti_affinity if other.cls.demands is not None else ():
            if company.together(term.topology_key, node, its) and company.means(world, term.selector, pod):
                return False
    keys = [one.topology_key for one in company.hard(pod)]
    keys += [term.topology_key for term in (demands.affinity if demands is not None else ())]
    return all(key in node.labels for key in keys)


def _apart(world: company.World, nodes: Sequence[NodeRecord], roles: Sequence[Role]) -> list[Apart]:
    found: dict[Apart, None] = {}
    singles = tuple(frozenset((n,)) for n in range(len(nodes)))
    for a, one in enumerate(roles):
        for b, other in enumerate(roles):
            ports = ((x, y) for x in one.first.cls.host_ports for y in other.first.cls.host_ports)
            if any(oracle.clash(x, y) for x, y in ports):
                found[Apart(min(a, b), max(a, b), singles)] = None
            demands = one.first.cls.demands
            for term in demands.anti_affinity if demands is not None else ():
                if company.means(world, term.selector, other.first):
                    domains = tuple(dict.fromkeys(_domains(nodes, term.topology_key).values()))
                    found[Apart(min(a, b), max(a, b), domains)] = None
    return list(found)


def _near(world: company.World, nodes: Sequence[NodeRecord], roles: Sequence[Role], pod: PodRecord) -> Near:
    assert pod.cls.demands is not None
    terms = pod.cls.demands.affinity
    selectors = [term.selector for term in terms]

    def meant(other: PodRecord) -> bool:
        return all(company.means(world, selector, other) for selector in selectors)

    mates = frozenset(r for r, role in enumerate(roles) if meant(role.first))
    running = tuple(sum(other.node == node.name and meant(other) for other in world.bound) for node in nodes)
    return Near(tuple(_domains(nodes, term.topology_key) for term in terms), mates, running, meant(pod))


def _even(
    world: company.World, nodes: Sequence[NodeRecord], roles: Sequence[Role], pod: PodRecord, one: SpreadConstraint
) -> Even:
    counting = frozenset(n for n, node in enumerate(nodes) if company.counts(node, pod, one))
    domain = {n: node.labels[one.topology_key] for n, node in enumerate(nodes) if one.topology_key in node.labels}
    crowd = {domain[n]: 0 for n in counting}
    index = {node.name: n for n, node in enumerate(nodes)}
    for other in world.bound:
        n = index[other.node or ""]
        if n in counting and not other.terminating and company.means(world, one.selector, other):
            crowd[domain[n]] += 1
    return Even(
        domain,
        counting,
        crowd,
        frozenset(r for r, role in enumerate(roles) if company.means(world, one.selector, role.first)),
        company.means(world, one.selector, pod),
        one.max_skew,
        len(crowd) >= one.min_domains,
    )
