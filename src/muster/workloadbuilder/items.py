"""What a controller says about its workload: a tree of items, each with a default and the user's own blocks (B1-B4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Block = Mapping[str, Any]
"""A JSON object as it stands in a manifest; never changed."""


@dataclass(frozen=True, slots=True)
class SchedulingConfig:
    """How one item is scheduled: a controller's default, and the result of merging it with the user's blocks (B2).

    `policy` is `{"basic": {}}` or `{"gang": {"minCount": n}}`; of an item with children, minCount counts groups.
    """

    policy: Block | None = None
    constraints: Block | None = None
    disruption_mode: Block | None = None
    resource_claims: Sequence[Block] | None = None
    priority_class_name: str = ""


@dataclass(frozen=True, slots=True)
class UserBlock:
    """One block of the user's object (B3).

    Attributes:
        path: where it stands in the user's object, below the root path given to `Builder.validate`.
        leaf: a building block for a group of pods, of an item without children.
        composite: a building block for a group of groups, of an item with children.
    """

    path: tuple[str, ...] = ()
    leaf: Any = None
    composite: Any = None


@dataclass(frozen=True, slots=True)
class WorkloadInput:
    """What the user said; None where nothing was said."""

    policy: UserBlock | None = None
    constraints: UserBlock | None = None
    disruption_mode: UserBlock | None = None
    resource_claims: UserBlock | None = None


Callback = Callable[[SchedulingConfig], SchedulingConfig]
"""Fills gaps of a merged configuration; it must keep what the user gave (B6)."""


@dataclass(frozen=True, slots=True)
class WorkloadItem:
    """A node of the controller's own view of its workload. With children it is composite, without a leaf."""

    name: str
    default: SchedulingConfig = SchedulingConfig()
    user: WorkloadInput = WorkloadInput()
    callbacks: tuple[Callback, ...] = ()
    children: tuple[WorkloadItem | None, ...] = ()

    @property
    def composite(self) -> bool:
        return bool(self.children)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What is the same for the whole tree (B4).

    Attributes:
        name: the Workload's name.
        owner: an ownerReference; becomes the controller of everything that is made.
        allowed_policies: of "basic" and "gang" those that users may choose; None: all, empty: none (B14).
        allowed_disruption_modes: the same of "single" and "all".
        disable_declarative_validation: skip the rules on blocks; the controller's own API has checked them (B15).
    """

    name: str
    namespace: str
    owner: Block | None = None
    allowed_policies: Sequence[str] | None = None
    allowed_disruption_modes: Sequence[str] | None = None
    disable_declarative_validation: bool = False


def default_min_count(count: int) -> Callback:
    """A callback that completes a gang without a count."""

    def fill(config: SchedulingConfig) -> SchedulingConfig:
        gang = (config.policy or {}).get("gang")
        if gang is None or gang.get("minCount") is not None:
            return config
        return SchedulingConfig(
            {"gang": {**gang, "minCount": count}},
            config.constraints,
            config.disruption_mode,
            config.resource_claims,
            config.priority_class_name,
        )

    return fill
