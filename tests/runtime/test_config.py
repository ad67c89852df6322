from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from muster.engine.profile import PlacementScore, Profile, ProfileError
from muster.plugins import BUILT_IN, default_profile
from muster.plugins.pod_affinity import PodAffinity
from muster.runtime import config
from muster.runtime.config import known_plugins, load_profile, profile_from
from muster.runtime.documents import parse
from muster.scheduler.machine import Scheduler


def from_text(text: str) -> Profile:
    return profile_from(parse(text, "p.yaml")[0].value, "p.yaml", BUILT_IN)


def test_without_a_file_the_built_in_profile_is_used() -> None:
    assert load_profile(None) == default_profile()


def test_the_example_profile_is_read_in_its_order() -> None:
    profile = load_profile(Path(__file__).parents[2] / "examples" / "profile.yaml")
    assert [plugin.name for plugin in profile.plugins][-2:] == ["spread", "balanced"]
    assert profile.weights["pack"] == 10


def test_the_built_in_profile_can_be_written_as_a_file(tmp_path: Path) -> None:
    built_in = default_profile()
    entries = "\n".join(
        f"- name: {plugin.name}"
        + (f"\n  weight: {built_in.weights[plugin.name]}" if plugin.name in built_in.weights else "")
        for plugin in built_in.plugins
    )
    file = tmp_path / "p.yaml"
    file.write_text(f"plugins:\n{entries}\n")
    assert load_profile(file) == built_in


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[]", "p.yaml: must be a mapping with plugins, "),
        (
            "plugin: []",
            "p.yaml: plugin: unknown field; a profile has plugins, placementScore, ",
        ),
        ("topologyLevels: example.com/rack", "p.yaml: topologyLevels: must be a list of node label keys, widest first"),
        ("topologyLevels: [a, 7]", "p.yaml: topologyLevels[1]: 7 is no text; give a node label key"),
        ("topologyLevels: [a, a b]", 'p.yaml: topologyLevels[1]: "a b" is no label key: '),
        ("topologyLevels: [a, b, a]", 'p.yaml: topologyLevels[2]: "a" is listed twice; list it once'),
        ("plugins: []", "p.yaml: plugins: must be a list"),
        ("plugins: pack", "p.yaml: plugins: must be a list"),
        ("plugins: [pack]", "p.yaml: plugins[0].name: missing"),
        ("plugins: [{name: ports}, {name: pak}]", 'p.yaml: plugins[1].name: no plugin is called "pak"; known: '),
        ("plugins: [{name: pack}, {name: pack}]", 'p.yaml: plugins[1].name: "pack" is listed twice; list it once'),
        ("plugins: [{name: pack, wight: 1}]", "p.yaml: plugins[0].wight: unknown field; an entry has name and weight"),
        ("plugins: [{name: pack, weight: 101}]", "p.yaml: plugins[0].weight: 101 is no weight; give a whole number"),
        ("plugins: [{name: pack, weight: 1.5}]", "p.yaml: plugins[0].weight: 1.5 is no weight"),
        ("plugins: [{name: pack, weight: true}]", "p.yaml: plugins[0].weight: True is no weight"),
        ("plugins: [{name: ports, weight: 1}]", 'p.yaml: plugins[0].weight: plugin "ports" does not score; remove'),
    ],
)
def test_a_wrong_profile_is_refused_at_the_field(text: str, wanted: str) -> None:
    with pytest.raises(ProfileError) as refused:
        from_text(text)
    assert wanted in str(refused.value)


def test_topology_levels_can_be_named_and_leave_the_plugins_as_they_are() -> None:
    profile = from_text("topologyLevels: [example.com/hall, example.com/rack]")
    assert profile == replace(default_profile(), levels=("example.com/hall", "example.com/rack"))
    assert Scheduler(profile).cache.snapshot().nodes.levels == profile.levels
    assert from_text("topologyLevels: []") == default_profile()


def test_the_settings_of_pod_affinity_are_read() -> None:
    text = "plugins: [{name: pack}, {name: pod_affinity}]\npodAffinity: "
    (_, plugin) = from_text(text + "{hardPodAffinityWeight: 7, ignorePreferredTermsOfExistingPods: true}").plugins
    assert plugin == PodAffinity(hard_weight=7, only_own_preferences=True)
    (_, plugin) = from_text(text + "{}").plugins
    assert plugin == PodAffinity()


@pytest.mark.parametrize(
    ("plugin", "settings", "wanted"),
    [
        ("pack", "{}", 'p.yaml: podAffinity: plugin "pod_affinity" is not listed'),
        ("pod_affinity", "[]", "p.yaml: podAffinity: must be a mapping"),
        ("pod_affinity", "{weight: 1}", "p.yaml: podAffinity.weight: unknown field; there are hardPodAffinityWeight"),
        (
            "pod_affinity",
            "{hardPodAffinityWeight: 101}",
            "p.yaml: podAffinity.hardPodAffinityWeight: 101; give a whole",
        ),
        ("pod_affinity", "{hardPodAffinityWeight: true}", "p.yaml: podAffinity.hardPodAffinityWeight: True; give a"),
        ("pod_affinity", "{ignorePreferredTermsOfExistingPods: 1}", "ignorePreferredTermsOfExistingPods: 1; want true"),
    ],
)
def test_wrong_settings_of_pod_affinity_are_refused_at_the_field(plugin: str, settings: str, wanted: str) -> None:
    with pytest.raises(ProfileError) as refused:
        from_text(f"plugins: [{{name: {plugin}}}]\npodAffinity: {settings}")
    assert wanted in str(refused.value)


def test_the_weights_of_the_placement_score_are_read() -> None:
    text = "plugins: [{name: pack}]\nplacementScore: {allocation: 3, resources: {nvidia.com/gpu: 2}}"
    assert from_text(text) == Profile(
        (BUILT_IN["pack"](),), placement=PlacementScore(pod_count=1, allocation=3, resources={"nvidia.com/gpu": 2})
    )
    assert from_text("plugins: [{name: pack}]") == Profile((BUILT_IN["pack"](),))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[]", "p.yaml: placementScore: must be a mapping"),
        ("{podcount: 1}", "p.yaml: placementScore.podcount: unknown field; there are podCount, allocation, resources"),
        ("{podCount: -1}", "p.yaml: placementScore.podCount is -1; give a whole number from 0 to 100"),
        ("{resources: [cpu]}", "p.yaml: placementScore.resources: must be a mapping"),
        ("{resources: {cpu: 1.5}}", "p.yaml: placementScore.resources.cpu is 1.5; give a whole number"),
        ("{resources: {}}", "p.yaml: placementScore.resources has no weight above 0"),
        ("{podCount: 0, allocation: 0}", "p.yaml: placementScore.podCount and allocation are both 0"),
    ],
)
def test_a_wrong_placement_score_is_refused_at_the_field(text: str, wanted: str) -> None:
    with pytest.raises(ProfileError) as refused:
        from_text(f"plugins: [{{name: pack}}]\nplacementScore: {text}")
    assert wanted in str(refused.value)


def test_plugins_of_other_packages_are_known_by_their_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = EntryPoint("mine", "muster.plugins.pack:Pack", config.GROUP)
    monkeypatch.setattr(config, "entry_points", lambda group: [mine] if group == config.GROUP else [])
    assert known_plugins()["mine"]() == BUILT_IN["pack"]()


def test_a_plugin_of_another_package_cannot_take_a_built_in_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "entry_points", lambda group: [EntryPoint("pack", "somewhere:Pack", group)])
    with pytest.raises(ProfileError, match=r"this name is taken; rename the plugin"):
        known_plugins()


def test_a_plugin_that_cannot_be_loaded_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "entry_points", lambda group: [EntryPoint("mine", "no_such_module:Plugin", group)])
    with pytest.raises(ProfileError, match=r'plugin "mine" \(no_such_module:Plugin\) cannot be loaded'):
        profile_from({"plugins": [{"name": "mine"}]}, "p.yaml", known_plugins())
