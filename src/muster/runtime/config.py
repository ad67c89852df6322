"""The profile file: which plugins decide, in which order, with which weights. Wrong files are refused field by field.

plugins:                    # in the order in which they are asked; the built-in ones if left out
  - {name: resources_fit}
  - {name: pack, weight: 5} # 0..100, for plugins that score; 1 if left out, 0 switches the score off
placementScore:             # how the domains of a topology constraint compare; each field may be left out
  podCount: 1
  allocation: 1
  resources: {cpu: 1, memory: 1}
topologyLevels:             # labels of domains, widest first; the well-known ones if left out
  - example.com/block
  - example.com/rack
topologySpread:             # what pods without spread constraints of their own are spread by; may be left out
  defaultingType: List      # System (the default): softly, by host and zone; List: defaultConstraints
  defaultConstraints:
    - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
podAffinity:                # may be left out
  hardPodAffinityWeight: 1  # 0..100
  ignorePreferredTermsOfExistingPods: false
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from muster.api.validation import names
from muster.engine.extension import Dependent, Plugin, Score
from muster.engine.profile import MAX_WEIGHT, PlacementScore, Profile, ProfileError
from muster.plugins import BUILT_IN, default_profile
from muster.plugins.pod_affinity import PodAffinity
from muster.runtime.documents import DocumentError, read
from muster.runtime.spreading import spread_defaults

GROUP = "muster.plugins"
"""Entry points of this group are plugins too: name -> a function without arguments that makes the plugin."""

Factory = Callable[[], Plugin]
FIELDS = ("plugins", "placementScore", "topologyLevels", "topologySpread", "podAffinity")
_NAMED = f"{', '.join(FIELDS[:-1])} and {FIELDS[-1]}"


def load_profile(path: Path | None) -> Profile:
    """The profile in this file, or the built-in one.

    Raises:
        ProfileError: says which field is wrong and what would be right.
    """
    if path is None:
        return default_profile()
    try:
        documents = read(path)
    except DocumentError as error:
        raise ProfileError(str(error)) from None
    if len(documents) != 1:
        raise ProfileError(f"{path}: has {len(documents)} documents; a profile is one")
    return profile_from(documents[0].value, str(path), known_plugins())


def known_plugins() -> Mapping[str, Factory]:
    """The built-in plugins and those of installed packages.

    Raises:
        ProfileError: two plugins claim one name.
    """
    known: dict[str, Factory] = dict(BUILT_IN)
    for entry in entry_points(group=GROUP):
        if entry.name in known:
            raise ProfileError(
                f'entry point "{entry.name} = {entry.value}" of group {GROUP}: this name is taken; rename the plugin'
            )
        known[entry.name] = _loader(entry)
    return known


def profile_from(value: Any, where: str, known: Mapping[str, Factory]) -> Profile:
    """The profile that the decoded file says.

    Raises:
        ProfileError: names the field, as `where: plugins[2].weight: ...`.
    """
    if not isinstance(value, dict):
        raise ProfileError(f"{where}: must be a mapping with {_NAMED}, as {{plugins: [{{name: pack}}]}}")
    for key in value:
        if key not in FIELDS:
            raise ProfileError(f"{where}: {key}: unknown field; a profile has {_NAMED}")
    plugins, weights = _plugins(value, where, known)
    if "podAffinity" in value:
        plugins = _with_affinity(plugins, value["podAffinity"], f"{where}: podAffinity")
    placement = _placement_score(value.get("placementScore", {}), f"{where}: placementScore")
    spread = spread_defaults(value.get("topologySpread", {}), f"{where}: topologySpread")
    levels = _levels(value.get("topologyLevels", []), f"{where}: topologyLevels")
    try:
        return Profile(plugins, weights, placement, spread, levels)
    except ProfileError as error:
        raise ProfileError(f"{where}: plugins: {error}") from None


def _plugins(
    value: Mapping[str, Any], where: str, known: Mapping[str, Factory]
) -> tuple[tuple[Plugin, ...], Mapping[str, int]]:
    """The plugins with the weights that are given; those of the built-in profile if the file names none."""
    if "plugins" not in value:
        default = default_profile()
        return default.plugins, default.weights
    entries = value["plugins"]
    if not isinstance(entries, list) or not entries:
        raise ProfileError(f"{where}: plugins: must be a list of {{name, weight}}, with at least one entry")
    made: dict[str, Plugin] = {}
    weights: dict[str, int] = {}
    for number, entry in enumerate(entries):
        field = f"{where}: plugins[{number}]"
        name, weight = _entry(entry, field, known)
        if name in made:
            raise ProfileError(f'{field}.name: "{name}" is listed twice; list it once')
        made[name] = known[name]()
        if weight is not None:
            weights[name] = weight
            _check_scores(made[name], field, name)
    return tuple(made.values()), weights


def _levels(value: Any, field: str) -> tuple[str, ...]:
    """Label keys, widest first."""
    if not isinstance(value, list):
        raise ProfileError(f"{field}: must be a list of node label keys, widest first, as [example.com/rack]")
    for number, key in enumerate(value):
        if not isinstance(key, str):
            raise ProfileError(f"{field}[{number}]: {key!r} is no text; give a node label key, as example.com/rack")
        if fault := names.label_key(key):
            raise ProfileError(f'{field}[{number}]: "{key}" is no label key: {fault}')
        if key in value[:number]:
            raise ProfileError(f'{field}[{number}]: "{key}" is listed twice; list it once')
    return tuple(value)


_PLACEMENT = {"podCount": "pod_count", "allocation": "allocation", "resources": "resources"}


def _placement_score(value: Any, field: str) -> PlacementScore:
    if not isinstance(value, dict):
        raise ProfileError(f"{field}: must be a mapping, for example {{podCount: 1, allocation: 1}}")
    for key in value:
        if key not in _PLACEMENT:
            raise ProfileError(f"{field}.{key}: unknown field; there are {', '.join(_PLACEMENT)}")
    resources = value.get("resources", {})
    if not isinstance(resources, dict) or not all(isinstance(name, str) for name in resources):
        raise ProfileError(f"{field}.resources: must be a mapping from resources to weights, as {{cpu: 1, memory: 1}}")
    try:
        return PlacementScore(**{_PLACEMENT[key]: given for key, given in value.items()})
    except ProfileError as error:
        raise ProfileError(f"{field}.{error}") from None


def _with_affinity(plugins: tuple[Plugin, ...], value: Any, field: str) -> tuple[Plugin, ...]:
    """The plugins, the one for pod affinity with these settings, in the same order."""
    if not any(isinstance(plugin, PodAffinity) for plugin in plugins):
        raise ProfileError(f'{field}: plugin "{PodAffinity().name}" is not listed; list it, or remove this field')
    if not isinstance(value, dict):
        raise ProfileError(f"{field}: must be a mapping, for example {{hardPodAffinityWeight: 1}}")
    for key in value:
        if key not in ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"):
            known = "hardPodAffinityWeight, ignorePreferredTermsOfExistingPods"
            raise ProfileError(f"{field}.{key}: unknown field; there are {known}")
    weight = value.get("hardPodAffinityWeight", PodAffinity().hard_weight)
    if type(weight) is not int or not 0 <= weight <= MAX_WEIGHT:
        raise ProfileError(f"{field}.hardPodAffinityWeight: {weight!r}; give a whole number from 0 to {MAX_WEIGHT}")
    only_own = value.get("ignorePreferredTermsOfExistingPods", False)
    if type(only_own) is not bool:
        raise ProfileError(f"{field}.ignorePreferredTermsOfExistingPods: {only_own!r}; want true or false")
    made = PodAffinity(weight, only_own)
    return tuple(made if isinstance(plugin, PodAffinity) else plugin for plugin in plugins)


def _entry(entry: Any, field: str, known: Mapping[str, Factory]) -> tuple[str, int | None]:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ProfileError(f"{field}.name: missing; an entry is {{name: pack}} or {{name: pack, weight: 5}}")
    for key in entry:
        if key not in ("name", "weight"):
            raise ProfileError(f"{field}.{key}: unknown field; an entry has name and weight")
    name, weight = entry["name"], entry.get("weight")
    if name not in known:
        raise ProfileError(f'{field}.name: no plugin is called "{name}"; known: {", ".join(sorted(known))}')
    if weight is not None and (type(weight) is not int or not 0 <= weight <= MAX_WEIGHT):
        raise ProfileError(f"{field}.weight: {weight!r} is no weight; give a whole number from 0 to {MAX_WEIGHT}")
    return name, weight


def _check_scores(plugin: Plugin, field: str, name: str) -> None:
    if not isinstance(plugin, Score | Dependent):
        raise ProfileError(f'{field}.weight: plugin "{name}" does not score; remove the weight')


def _loader(entry: EntryPoint) -> Factory:
    def make() -> Plugin:
        try:
            return cast("Plugin", entry.load()())
        except Exception as failure:  # somebody else's package: whatever it raises, say where it comes from
            raise ProfileError(
                f'plugin "{entry.name}" ({entry.value}) cannot be loaded: {type(failure).__name__}: {failure}'
            ) from failure

    return make
