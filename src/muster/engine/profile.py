"""The ordered plugins of a scheduler, with the weights of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from muster.engine.extension import Capacity, Filter, Plugin, Score

MAX_WEIGHT = 100


class ProfileError(ValueError):
    """A profile that cannot be used; the message names the plugin and the fix."""


@dataclass(frozen=True)
class Profile:
    """Plugins in the order in which they are asked; a score without a weight has weight 1, weight 0 switches it off.

    Raises:
        ProfileError: a plugin appears twice, extends nothing, or a weight is unknown, misplaced or out of 0..100.
    """

    plugins: tuple[Plugin, ...]
    weights: Mapping[str, int] = field(default_factory=dict)
    filters: tuple[Filter, ...] = field(init=False, repr=False, compare=False)
    capacities: tuple[Capacity, ...] = field(init=False, repr=False, compare=False)
    scores: tuple[tuple[Score, int], ...] = field(init=False, repr=False, compare=False)
    """Those with a weight above 0."""

    def __post_init__(self) -> None:
        names = [plugin.name for plugin in self.plugins]
        for name in names:
            if names.count(name) > 1:
                raise ProfileError(f'plugin "{name}" is listed twice; list it once')
        for plugin in self.plugins:
            if not isinstance(plugin, Filter | Capacity | Score):
                raise ProfileError(f'plugin "{plugin.name}" has none of filter, rows and score')
        scores = tuple(plugin for plugin in self.plugins if isinstance(plugin, Score))
        _check_weights(self.weights, names, [plugin.name for plugin in scores])
        object.__setattr__(self, "weights", dict(self.weights))
        object.__setattr__(self, "filters", tuple(p for p in self.plugins if isinstance(p, Filter)))
        object.__setattr__(self, "capacities", tuple(p for p in self.plugins if isinstance(p, Capacity)))
        weighted = ((plugin, self.weights.get(plugin.name, 1)) for plugin in scores)
        object.__setattr__(self, "scores", tuple((plugin, weight) for plugin, weight in weighted if weight))


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
