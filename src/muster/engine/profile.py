"""The ordered plugins of a scheduler, with the weights of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from muster.engine.extension import Capacity, Dependent, Filter, Plugin, Score
from muster.model.neighbours import PodSelector, SpreadConstraint
from muster.model.resources import CPU, MEMORY

MAX_WEIGHT = 100


_ALIKE = PodSelector(None)
"""Stands for the selector of a pod's Services and controller."""
SYSTEM_SPREAD: tuple[SpreadConstraint, ...] = (
    SpreadConstraint(_ALIKE, "kubernetes.io/hostname", 3, hard=False, everywhere=True),
    SpreadConstraint(_ALIKE, "topology.kubernetes.io/zone", 5, hard=False, everywhere=True),
)
"""What kube-scheduler spreads by where nothing else is said (defaultingType System)."""


class ProfileError(ValueError):
    """A profile that cannot be used; the message names the plugin and the fix."""


@dataclass(frozen=True)
class PlacementScore:
    """How domains compare that all hold a constrained group (statement 41): the sum of two weighted scores up to 100.

    Raises:
        ProfileError: a weight is no whole number from 0 to 100, or all that there are are 0.
    """

    pod_count: int = 1
    """How many members are placed, the domain that takes most of them having 100."""
    allocation: int = 1
    """How much of the domain's resources is requested once they are placed, in percent."""
    resources: Mapping[str, int] = field(default_factory=lambda: {CPU: 1, MEMORY: 1})
    """The resources that `allocation` averages over, with their weights."""

    def __post_init__(self) -> None:
        named = {"podCount": self.pod_count, "allocation": self.allocation}
        named.update({f"resources.{name}": weight for name, weight in self.resources.items()})
        for name, weight in named.items():
            if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= MAX_WEIGHT:
                raise ProfileError(f"{name} is {weight!r}; give a whole number from 0 to {MAX_WEIGHT}")
        if not self.pod_count and not self.allocation:
            raise ProfileError("podCount and allocation are both 0; give one of them a weight")
        if self.allocation and not any(self.resources.values()):
            raise ProfileError("resources has no weight above 0; name one, or set allocation to 0")
        object.__setattr__(self, "resources", dict(self.resources))


@dataclass(frozen=True)
class Profile:
    """Plugins in the order in which they are asked; a score without a weight has weight 1, weight 0 switches it off.

    Raises:
        ProfileError: a plugin appears twice, extends nothing, or a weight is unknown, misplaced or out of 0..100.
    """

    plugins: tuple[Plugin, ...]
    weights: Mapping[str, int] = field(default_factory=dict)
    placement: PlacementScore = field(default_factory=PlacementScore)
    spread: tuple[SpreadConstraint, ...] = SYSTEM_SPREAD
    """Of pods that have no constraint of their own; the selector is that of their Services and controller."""
    levels: tuple[str, ...] = ()
    """Topology label keys, widest first: what keeps groups together (M16); none: the well-known ones of nodes."""
    filters: tuple[Filter, ...] = field(init=False, repr=False, compare=False)
    capacities: tuple[Capacity, ...] = field(init=False, repr=False, compare=False)
    scores: tuple[tuple[Score, int], ...] = field(init=False, repr=False, compare=False)
    """Those with a weight above 0."""
    dependents: tuple[tuple[Dependent, int], ...] = field(init=False, repr=False, compare=False)
    """With the weights of their scores, 0 included: they filter too."""

    def __post_init__(self) -> None:
        names = [plugin.name for plugin in self.plugins]
        for name, plugin in zip(names, self.plugins, strict=True):
            if names.count(name) > 1:
                raise ProfileError(f'plugin "{name}" is listed twice; list it once')
            if not isinstance(plugin, Filter | Capacity | Score | Dependent):
                raise ProfileError(f'plugin "{name}" has none of filter, rows, score and relate')
        scores = tuple(plugin for plugin in self.plugins if isinstance(plugin, Score))
        dependents = tuple(plugin for plugin in self.plugins if isinstance(plugin, Dependent))
        scoring = [*(plugin.name for plugin in scores), *(plugin.name for plugin in dependents)]
        _check_weights(self.weights, names, scoring)
        object.__setattr__(self, "weights", dict(self.weights))
        object.__setattr__(self, "filters", tuple(p for p in self.plugins if isinstance(p, Filter)))
        object.__setattr__(self, "capacities", tuple(p for p in self.plugins if isinstance(p, Capacity)))
        weighted = ((plugin, self.weights.get(plugin.name, 1)) for plugin in scores)
        object.__setattr__(self, "scores", tuple((plugin, weight) for plugin, weight in weighted if weight))
        object.__setattr__(self, "dependents", tuple((p, self.weights.get(p.name, 1)) for p in dependents))

    def placing(self, placement: PlacementScore) -> Profile:
        """The same with another score of domains; nothing has to be checked again."""
        other = copy(self)
        object.__setattr__(other, "placement", placement)
        return other


def _check_weights(weights: Mapping[str, int], names: Sequence[str], scores: Sequence[str]) -> None:
    for name, weight in weights.items():
        if name not in names:
            raise ProfileError(f'weight for "{name}", which is not in the profile; it has: {", ".join(names)}')
        if name not in scores:
            raise ProfileError(f'plugin "{name}" does not score; weights are for: {", ".join(scores)}')
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= MAX_WEIGHT:
            raise ProfileError(f'weight of "{name}" is {weight!r}; give a whole number from 0 to {MAX_WEIGHT}')


def build_profile(
    names: Sequence[str], weights: Mapping[str, int], known: Mapping[str, Callable[[], Plugin]]
) -> Profile:
    """The profile of the named plugins, in this order.

    Raises:
        ProfileError: as Profile, or a name is not among `known`.
    """
    for name in names:
        if name not in known:
            raise ProfileError(f'no plugin is called "{name}"; known: {", ".join(sorted(known))}')
    return Profile(tuple(known[name]() for name in names), weights)
