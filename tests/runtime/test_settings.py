"""The configuration file of `muster scheduler`: both forms, and every mistake with its field."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.api.instant import SECOND
from muster.engine.profile import Profile
from muster.plugins import default_profile
from muster.plugins.pod_affinity import PodAffinity
from muster.runtime.configuration import load_settings
from muster.runtime.fields import Wrong
from muster.runtime.settings import Settings

OWN = "apiVersion: muster.dev/v1\nkind: SchedulerConfiguration\n"
KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def loaded(folder: Path, text: str) -> Settings:
    file = folder / "scheduler.yaml"
    file.write_text(text)
    return load_settings(file)


def plugins(profile: Profile) -> set[str]:
    return {plugin.name for plugin in profile.plugins}


def test_an_empty_file_of_our_form_is_the_default(tmp_path):
    made = loaded(tmp_path, OWN)
    assert set(made.profiles) == {"muster"} and made.preemption and made.ignored == ()
    assert made.lease.terms("me") is not None


def test_our_form_says_everything(tmp_path):
    made = loaded(
        tmp_path,
        OWN
        + """
profiles:
  - schedulerName: training
    plugins: [{name: resources_fit}, {name: pack, weight: 7}]
    topologyLevels: [example.com/rack]
  - schedulerName: serving
leaderElection: {leaseDuration: 1m30s, renewDeadline: 20s, retryPeriod: 500ms, resourceNamespace: ml, resourceName: m}
clientConnection: {kubeconfig: ./config, context: admin}
preemption: false
featureGates: {InPlacePodVerticalScalingSchedulerPreemption: true}
""",
    )
    training = made.profiles["training"]
    assert plugins(training) == {"resources_fit", "pack"} and training.weights["pack"] == 7
    assert training.levels == ("example.com/rack",) and plugins(made.profiles["serving"]) == plugins(default_profile())
    terms = made.lease.terms("me")
    assert terms is not None and (terms.hold, terms.renew, terms.retry) == (90 * SECOND, 20 * SECOND, SECOND // 2)
    assert (terms.namespace, terms.name) == ("ml", "m")
    assert made.kubeconfig == tmp_path / "config" and made.context == "admin" and not made.preemption
    assert made.gates.resize_preemption


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("- a", ": must be a mapping"),
        ("kind: SchedulerConfiguration", "apiVersion: missing"),
        ("apiVersion: muster.dev/v1\nkind: Nope", "kind: 'Nope'"),
        ("apiVersion: muster.dev/v2\nkind: SchedulerConfiguration", "apiVersion: 'muster.dev/v2'"),
        (OWN + "profile: []", "profile: unknown field"),
        (OWN + "profiles: {}", "profiles: must be a list"),
        (OWN + "profiles: []", "profiles: has no entry"),
        (OWN + "profiles: [{}]", "profiles[0].schedulerName: missing"),
        (OWN + "profiles: [{schedulerName: A_b}]", "profiles[0].schedulerName: "),
        (OWN + "profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[1].schedulerName: "),
        (OWN + "profiles: [{schedulerName: a, plugins: [{name: nope}]}]", "profiles[0]: plugins[0].name: "),
        (OWN + "leaderElection: {leaseDuration: 5}", "leaderElection.leaseDuration: 5"),
        (OWN + "leaderElection: {leaseDuration: 5s}", "leaderElection.leaseDuration: must be longer"),
        (OWN + "leaderElection: {leaderElect: maybe}", "leaderElection.leaderElect: 'maybe'"),
        (OWN + "leaderElection: {resourceLock: leases}", "leaderElection.resourceLock: unknown field"),
        (OWN + "clientConnection: {kubeconfig: 7}", "clientConnection.kubeconfig: 7"),
        (OWN + "preemption: 1", "preemption: 1"),
        (OWN + "featureGates: {Nope: true}", "featureGates: "),
        (OWN + "featureGates: {GenericWorkload: 1}", "featureGates.GenericWorkload: 1"),
        (KUBE + "leaderElection: {resourceLock: endpoints}", "leaderElection.resourceLock: 'endpoints'"),
        (KUBE + "nope: 1", "nope: unknown field"),
        (KUBE + "profiles: [{schedulerName: a, plugins: {nope: {}}}]", "profiles[0].plugins.nope: unknown field"),
        (
            KUBE + "profiles: [{schedulerName: a, plugins: {score: {enabled: [{name: X}]}}}]",
            "profiles[0].plugins.score.enabled[0].name: ",
        ),
        (
            KUBE + "profiles: [{schedulerName: a, plugins: {score: {enabled: [{name: ImageLocality, weight: 101}]}}}]",
            "profiles[0].plugins.score.enabled[0].weight: 101",
        ),
        (
            KUBE + "profiles: [{schedulerName: a, pluginConfig: [{name: InterPodAffinity, args: {nope: 1}}]}]",
            "profiles[0].pluginConfig[0].args.nope: unknown field",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_field(tmp_path, text, field):
    with pytest.raises(Wrong) as found:
        loaded(tmp_path, text)
    assert str(found.value).startswith(str(tmp_path / "scheduler.yaml")) and field in str(found.value)


def test_two_documents_are_refused(tmp_path):
    with pytest.raises(Wrong, match="2 documents"):
        loaded(tmp_path, OWN + "---\n" + OWN)


def test_kube_schedulers_form_is_read_and_what_means_nothing_here_is_listed(tmp_path):
    made = loaded(
        tmp_path,
        KUBE
        + """
parallelism: 8
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 60
clientConnection: {kubeconfig: /etc/config, qps: 50}
leaderElection: {leaderElect: false, resourceLock: leases}
profiles:
  - schedulerName: default-scheduler
    percentageOfNodesToScore: 50
    plugins:
      multiPoint:
        disabled: [{name: ImageLocality}]
      score:
        disabled: [{name: PodTopologySpread}]
        enabled: [{name: InterPodAffinity, weight: 9}]
      permit:
        enabled: [{name: Mine}]
    pluginConfig:
      - name: InterPodAffinity
        args: {hardPodAffinityWeight: 50}
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated}}
  - schedulerName: bare
    plugins:
      score: {disabled: [{name: "*"}]}
""",
    )
    one = made.profiles["default-scheduler"]
    assert "image_locality" not in plugins(one) and one.weights["topology_spread"] == 0
    assert one.weights["pod_affinity"] == 9 and PodAffinity(50, False) in one.plugins
    assert made.profiles["bare"].scores == () and plugins(made.profiles["bare"]) == plugins(default_profile())
    assert made.lease.terms("me") is None and made.kubeconfig == Path("/etc/config")
    assert [text.partition(":")[0] for text in made.ignored] == [
        "parallelism",
        "podMaxBackoffSeconds",
        "clientConnection.qps",
        "profiles[0].plugins.permit",
        "profiles[0].pluginConfig[1]",
        "profiles[0].percentageOfNodesToScore",
    ]


def test_a_plugin_that_was_disabled_with_all_others_can_be_enabled_again(tmp_path):
    text = "profiles: [{schedulerName: a, plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: %s}]}}}]"
    made = loaded(tmp_path, KUBE + text % "NodeResourcesFit")
    assert plugins(made.profiles["a"]) == {"resources_fit", "pack", "spread"}


def test_without_profiles_kube_schedulers_form_means_the_default_scheduler(tmp_path):
    assert set(loaded(tmp_path, KUBE).profiles) == {"default-scheduler"}
