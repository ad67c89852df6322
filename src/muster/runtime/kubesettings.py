"""kube-scheduler's KubeSchedulerConfiguration, as far as its fields mean something here; the others are listed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from muster.engine.extension import Capacity, Dependent, Filter, Plugin, Score
from muster.engine.profile import Profile, ProfileError
from muster.plugins import BUILT_IN, default_profile
from muster.plugins.pod_affinity import PodAffinity
from muster.runtime.fields import Field, Wrong
from muster.runtime.settings import Settings, read_kubeconfig, read_lease, read_name
from muster.runtime.spreading import spread_defaults

API_VERSION, KIND = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
PLUGINS: Mapping[str, tuple[str, ...]] = {
    "NodeUnschedulable": ("node_unschedulable",),
    "TaintToleration": ("taints",),
    "NodeAffinity": ("node_selection",),
    "NodePorts": ("ports",),
    "NodeResourcesFit": ("resources_fit", "pack", "spread"),
    "PodTopologySpread": ("topology_spread",),
    "InterPodAffinity": ("pod_affinity",),
    "NodeDeclaredFeatures": ("node_features",),
    "VolumeBinding": ("volume_claims", "volume_binding"),
    "VolumeZone": ("volume_zone",),
    "NodeVolumeLimits": ("volume_drivers", "volume_limits"),
    "VolumeRestrictions": ("volume_restrictions",),
    "DynamicResources": ("device_claims", "device_reach", "devices"),
    "NodeResourcesBalancedAllocation": ("balanced",),
    "ImageLocality": ("image_locality",),
}
"""kube-scheduler's plugins, and those of ours that do the same."""
ALWAYS = (
    "PrioritySort", "NodeName", "SchedulingGates", "DefaultBinder", "DefaultPreemption", "GangScheduling",
    "PodGroupPodsCount", "TopologyPlacementGenerator",
)  # fmt: skip
"""What they do is a part of Muster, and cannot be switched off one by one."""
POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
    "bind", "postBind", "placementGenerate", "placementScore",
)  # fmt: skip
_TUNING = {
    "parallelism": "decisions are made on whole arrays",
    "percentageOfNodesToScore": "all nodes are looked at, always",
    "podInitialBackoffSeconds": "waits are 1 s, doubling to 10 s",
    "podMaxBackoffSeconds": "waits are 1 s, doubling to 10 s",
    "delayCacheUntilActive": "a standby has everything at hand",
    "enableProfiling": "there is no such endpoint",
    "enableContentionProfiling": "there is no such endpoint",
    "healthzBindAddress": "see --host and --port",
    "metricsBindAddress": "see --host and --port",
    "extenders": "no extender is asked: what it would refuse is not refused",
}
_AS_HERE = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 10, "extenders": []}
_CONNECTION = ("acceptContentTypes", "contentType", "qps", "burst")


def read_settings(root: Field, path: Path) -> Settings:
    """
    Raises:
        Wrong: names the field and what to write.
    """
    root.only("apiVersion", "kind", "profiles", "leaderElection", "clientConnection", *_TUNING)
    ignored: list[str] = []
    for name, why in _TUNING.items():
        given = root.at(name)
        if given.given and given.value != _AS_HERE.get(name):
            ignored.append(f"{name}: {why}")
    client = root.at("clientConnection").only("kubeconfig", *_CONNECTION)
    for name in _CONNECTION:
        if client.at(name).given:
            ignored.append(f"clientConnection.{name}: JSON is spoken, and the server's own limits are heeded")
    lock = root.at("leaderElection").at("resourceLock")
    lock.one_of(("leases",), "leases")
    lease = read_lease(root.at("leaderElection"), "resourceLock")
    made: dict[str, Profile] = {}
    for entry in root.at("profiles").items("{schedulerName, plugins, pluginConfig}"):
        entry.only("schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore")
        name = read_name(entry.at("schedulerName"), made)
        made[name] = _Reader(entry, ignored).profile()
    kubeconfig = read_kubeconfig(client.at("kubeconfig"), path)
    profiles = made or {"default-scheduler": default_profile()}
    return Settings(profiles, lease, kubeconfig, ignored=tuple(dict.fromkeys(ignored)))


class _Reader:
    """Reads one profile: it begins with all that Muster has; what is disabled goes, what is weighed is weighed."""

    def __init__(self, entry: Field, ignored: list[str]) -> None:
        self._entry, self._ignored = entry, ignored
        plain = default_profile()
        self._plugins: dict[str, Plugin] = {plugin.name: plugin for plugin in plain.plugins}
        self._weights = dict(plain.weights)
        self._spread = plain.spread

    def profile(self) -> Profile:
        plugins = self._entry.at("plugins").only("multiPoint", *POINTS)
        self._point(plugins.at("multiPoint"))
        for name in POINTS:
            if name in ("filter", "score"):
                self._point(plugins.at(name), only=name)
            elif plugins.at(name).given:
                self._ignore(plugins.at(name), "plugins are switched by multiPoint, filter and score")
        for config in self._entry.at("pluginConfig").items("{name, args}"):
            self._config(config)
        if self._entry.at("percentageOfNodesToScore").given:
            self._ignore(self._entry.at("percentageOfNodesToScore"), _TUNING["percentageOfNodesToScore"])
        try:
            return Profile(tuple(self._plugins.values()), self._weights, spread=self._spread)
        except ProfileError as error:
            raise self._entry.at("plugins").wrong(str(error)) from None

    def _point(self, point: Field, only: str = "") -> None:
        """The switches of one extension point; `only`: filter or score, else both."""
        point.only("enabled", "disabled")
        for entry in point.at("disabled").items("{name}"):
            entry.only("name", "weight")
            name = entry.at("name").text(None, "ImageLocality")
            if name in ALWAYS:
                self._ignore(entry, f"what {name} does is a part of Muster")
            for ours in tuple(self._plugins) if name == "*" else self._ours(entry.at("name"), name):
                self._disable(entry, ours, only)
        for entry in point.at("enabled").items("{name, weight}"):
            entry.only("name", "weight")
            weight = entry.at("weight").whole(0, 0, 100)
            for ours in self._ours(entry.at("name"), entry.at("name").text(None, "ImageLocality")):
                self._enable(ours, weight)

    def _ours(self, at: Field, name: str) -> tuple[str, ...]:
        if name in PLUGINS:
            return PLUGINS[name]
        if name in ALWAYS:
            return ()
        known = ", ".join((*PLUGINS, *ALWAYS))
        raise at.wrong(f'no plugin is called "{name}"; known: {known}')

    def _disable(self, entry: Field, ours: str, only: str) -> None:
        plugin = self._plugins.get(ours)
        if plugin is None:
            return
        scores, filters = isinstance(plugin, Score | Dependent), isinstance(plugin, Filter | Capacity | Dependent)
        if only == "score":
            if scores:
                self._weights[ours] = 0
        elif only == "filter" and scores:
            if filters:
                self._ignore(entry, f"{ours} filters and scores; disable it in multiPoint, for both")
        else:
            del self._plugins[ours]
            self._weights.pop(ours, None)

    def _enable(self, ours: str, weight: int) -> None:
        if ours not in self._plugins:
            self._plugins[ours] = BUILT_IN[ours]()
            order = list(BUILT_IN)
            self._plugins = dict(sorted(self._plugins.items(), key=lambda one: order.index(one[0])))
        if isinstance(self._plugins[ours], Score | Dependent):
            if weight:
                self._weights[ours] = weight
            elif not self._weights.get(ours, 1):
                self._weights[ours] = 1

    def _config(self, config: Field) -> None:
        config.only("name", "args")
        name, args = config.at("name").text(None, "InterPodAffinity"), config.at("args")
        if name == "InterPodAffinity":
            self._affinity(args)
        elif name == "PodTopologySpread":
            args.only("apiVersion", "kind", "defaultConstraints", "defaultingType")
            given = {key: args.value[key] for key in ("defaultConstraints", "defaultingType") if key in args.value}
            try:
                self._spread = spread_defaults(given, args.path)
            except ProfileError as error:
                raise Wrong(str(error)) from None
        elif name in PLUGINS or name in ALWAYS:
            self._ignore(config, f"the arguments of {name} have no counterpart")
        else:
            self._ours(config.at("name"), name)

    def _affinity(self, args: Field) -> None:
        args.only("apiVersion", "kind", "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods")
        if "pod_affinity" in self._plugins:
            weight = args.at("hardPodAffinityWeight").whole(PodAffinity().hard_weight, 0, 100)
            only_own = args.at("ignorePreferredTermsOfExistingPods").flag(False)
            self._plugins["pod_affinity"] = PodAffinity(weight, only_own)

    def _ignore(self, what: Field, why: str) -> None:
        self._ignored.append(f"{what.path.partition(': ')[2]}: {why}")
