"""Demands on the labels of nodes: of pods, and of the volumes that can be reached from some nodes only."""

from __future__ import annotations

from typing import NamedTuple


class Requirement(NamedTuple):
    """One expression on a node label, or on the node's name when `key` is None (matchFields metadata.name).

    `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt; Gt and Lt hold for labels that are integers only.
    """

    key: str | None
    operator: str
    values: tuple[str, ...] = ()


class Term(NamedTuple):
    """Requirements that must all hold. An empty term matches no node."""

    requirements: tuple[Requirement, ...]
