"""A hierarchy of groups as text: one line per group with its domain, one per host with the pods on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from muster.api import catalog
from muster.cli.client import Client
from muster.cli.failure import Failure
from muster.views.tree import COMPOSITE, Branch, Objects, forest, tree

HOSTS = 16
"""So many hosts of a group are shown."""
WIDTH = 79
_HEAD = ("GROUP", "NEEDS", "HAS", "WHERE")


def printed(client: Client, kind: catalog.Kind, names: Sequence[str], namespace: str) -> str:
    """The hierarchies below these groups; without names, all in the namespace.

    Raises:
        Failure: there is no such group.
    """
    objects = fetched(client, namespace)
    if not names:
        if kind is catalog.COMPOSITE_POD_GROUP:
            shown = forest(objects)
        else:
            shown = tuple(b for raw in objects.groups for b in tree(objects, kind.kind, raw["metadata"]["name"]))
        return text(shown) if shown else f"no {kind.plural} found"
    branches: list[Branch] = []
    for name in names:
        found = tree(objects, kind.kind, name)
        if not found:
            raise Failure(f'{kind.plural}.{kind.group} "{name}" not found')
        branches += found
    return text(branches)


def fetched(client: Client, namespace: str) -> Objects:
    """What the API has of a namespace, and all nodes. Without the gate there are no composite groups."""

    def items(kind: catalog.Kind) -> Sequence[Mapping[str, Any]]:
        answer = client.call("GET", kind.path(namespace if kind.namespaced else None))
        return answer.body["items"] if answer.ok else []

    return Objects(
        *(items(kind) for kind in (catalog.COMPOSITE_POD_GROUP, catalog.POD_GROUP, catalog.POD, catalog.NODE))
    )


def text(branches: Sequence[Branch], width: int = WIDTH) -> str:
    """A table whose first column is indented by level; what does not fit on a line goes on below."""
    rows: list[tuple[str, str, str, str]] = [_HEAD]
    for branch in branches:
        rows.append(_row(branch))
        pad = "  " * (branch.depth + 1)
        for node, pods in branch.hosts[:HOSTS]:
            rows.append((f"{pad}{node}", "", str(len(pods)), _members(pods)))
        if len(branch.hosts) > HOSTS:
            rest = branch.hosts[HOSTS:]
            rows.append((f"{pad}({len(rest)} more hosts)", "", str(sum(len(pods) for _, pods in rest)), ""))
        if branch.waiting:
            rows.append((f"{pad}(no node yet)", "", str(len(branch.waiting)), _members(branch.waiting)))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(_line(row, widths, width) for row in rows)


def _row(branch: Branch) -> tuple[str, str, str, str]:
    unit = "group" if branch.kind == COMPOSITE else "pod"
    needs = f"{branch.minimum} {unit}{'' if branch.minimum == 1 else 's'}"
    where = branch.trouble or _where(branch)
    return "  " * branch.depth + branch.name, needs, f"{branch.there} of {branch.known}", where


def _where(branch: Branch) -> str:
    """`rack r7`; without a constraint, on how many hosts a PodGroup is."""
    if not branch.key:
        count = len(branch.hosts)
        return f"{count} host{'' if count == 1 else 's'}" if count else ""
    level = branch.key.rpartition("/")[2]
    if not branch.domains:
        return f"no {level} yet"
    return f"{level} {', '.join(domain or '(no label)' for domain in branch.domains)}"


def _members(names: Sequence[str]) -> str:
    """`prefill-0..3, prefill-7`: runs of numbers at the end of a common name in one."""
    found: list[str] = []
    split = [(name.rstrip("0123456789"), name) for name in names]
    for stem, some in groupby(split, key=lambda pair: pair[0]):
        numbers = [name[len(stem) :] for _, name in some]
        if not all(number.isdecimal() and str(int(number)) == number for number in numbers):
            found += [f"{stem}{number}" for number in numbers]
            continue
        ranks = [int(number) for number in numbers]
        for _, run in groupby(enumerate(ranks), key=lambda pair: pair[1] - pair[0]):
            first, *rest = [rank for _, rank in run]
            found.append(f"{stem}{first}..{rest[-1]}" if rest else f"{stem}{first}")
    return ", ".join(found)


def _line(row: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Wraps the last cell, never within a name."""
    head = "".join(cell.ljust(most) + "  " for cell, most in zip(row, widths, strict=False))
    lines, room = [""], max(width - len(head), 20)
    for word in row[3].split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return "\n".join((head if i == 0 else " " * len(head)) + line for i, line in enumerate(lines)).rstrip()
