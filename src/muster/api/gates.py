"""Feature gates as a frozen record: the names of v1.37, their stages and defaults, and what needs what."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType


class Stage(Enum):
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate. A locked one cannot be changed; `needs` must all be on where this one is."""

    name: str
    stage: Stage
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()


def _table() -> Mapping[str, Gate]:
    workload = ("GenericWorkload",)
    gates = (
        Gate("GenericWorkload", Stage.BETA, False),
        Gate("TopologyAwareWorkloadScheduling", Stage.ALPHA, False, needs=workload),
        Gate("CompositePodGroup", Stage.ALPHA, False, needs=("GenericWorkload", "TopologyAwareWorkloadScheduling")),
        Gate("PodGroupPreemptionPolicy", Stage.ALPHA, False, needs=workload),
        Gate("DRAWorkloadResourceClaims", Stage.BETA, False, needs=workload),
        Gate("WorkloadWithJob", Stage.ALPHA, False, needs=workload),
        Gate("InPlacePodVerticalScalingSchedulerPreemption", Stage.ALPHA, False),
        Gate("TaintTolerationComparisonOperators", Stage.ALPHA, False),
        Gate("UserNamespacesHostNetworkSupport", Stage.ALPHA, False),
        Gate("SchedulerAsyncAPICalls", Stage.BETA, False),
        Gate("SchedulerPreQueueingHints", Stage.ALPHA, False),
        *(Gate(name, Stage.ALPHA, False) for name in _ALPHA_DEVICES),
        *(Gate(name, Stage.BETA, True) for name in _BETA_ON),
        *(Gate(name, Stage.GA, True) for name in _GA_ON),
        *(Gate(name, Stage.GA, True, locked=True) for name in _GA_LOCKED),
    )
    return MappingProxyType({gate.name: gate for gate in gates})


_ALPHA_DEVICES = (
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAOptionalNodeOperations",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
)
_BETA_ON = (
    "PodLevelResources",
    "SchedulerAsyncPreemption",
    "NominatedNodeNameForExpectation",
    "SchedulerPopFromBackoffQ",
    "OpportunisticBatching",
    "NodeDeclaredFeatures",
    "InPlacePodLevelResourcesVerticalScaling",
    "StorageCapacityScoring",
    "VolumeLimitScaling",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "DRAPartitionableDevices",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRASchedulerFilterTimeout",
    "DRAFractionalCapacityRange",
)
_GA_ON = ("DRADeviceTaints", "DRADeviceTaintRules", "DRAResourceClaimDeviceStatus")
_GA_LOCKED = ("InPlacePodVerticalScaling", "DRAAdminAccess", "DRAPrioritizedList", "DRAExtendedResource")

GATES: Mapping[str, Gate] = _table()
"""Every gate by name: section 0 of the API semantics; TaintTolerationComparisonOperators is KEP-5471,
UserNamespacesHostNetworkSupport KEP-5607, MatchLabelKeysInPodTopologySpreadSelectorMerge KEP-3243."""

MERGED: Mapping[str, str] = MappingProxyType(
    {"GangScheduling": "GenericWorkload", "WorkloadAwarePreemption": "GenericWorkload"}
)
"""Gates of v1.36 that v1.37 no longer has, and the gate that took them over (statement 1)."""

WORKLOAD_AWARE: tuple[str, ...] = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "CompositePodGroup",
    "PodGroupPreemptionPolicy",
    "DRAWorkloadResourceClaims",
    "WorkloadWithJob",
)

TARGETS = ("1.37", "1.38")
"""Releases of Kubernetes whose rules can be held to; the first is the default."""

_DEFAULT_ON = frozenset(name for name, gate in GATES.items() if gate.default)


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Which gates are on. `FeatureGates()` has Kubernetes' own defaults."""

    on: frozenset[str] = _DEFAULT_ON
    target: str = TARGETS[0]
    """The release whose rules hold where they differ."""

    def __post_init__(self) -> None:
        lacking = {name: _lacking(name, self.on) for name in sorted(self.on) if _lacking(name, self.on)}
        if lacking:
            wanted = dict.fromkeys(need for missing in lacking.values() for need in missing)
            needs = (f"{need} is needed by {_listed(n for n, m in lacking.items() if need in m)}" for need in wanted)
            add, leave = _values(wanted, True), _values(_without_support(self.on), False)
            raise ValueError(f"feature gate {'; '.join(needs)}: add {add}, or switch off what needs it: add {leave}")

    @classmethod
    def of(cls, *names: str) -> FeatureGates:
        """The defaults, and these gates on.

        Raises:
            ValueError: a name is unknown, or a gate is on without one it needs.
        """
        return cls().changed(dict.fromkeys(names, True))

    @classmethod
    def parse(cls, text: str, base: FeatureGates | None = None) -> FeatureGates:
        """Reads `A=true,B=false` as changes of `base` (the defaults).

        Raises:
            ValueError: no `name=bool`, a name that is unknown, removed or given twice, a locked gate, or a gate on
                without one it needs.
        """
        values: dict[str, bool] = {}
        for name, value in _pairs(text):
            if name in values:
                raise ValueError(f"feature gate {name} is given twice; keep one")
            values[name] = value
        return (base or cls()).changed(values)

    def changed(self, values: Mapping[str, bool]) -> FeatureGates:
        """These gates with some switched.

        Raises:
            ValueError: see `parse`.
        """
        for name, value in values.items():
            gate = _known(name)
            if gate.locked and value is not gate.default:
                raise ValueError(f"feature gate {name} is locked to {str(gate.default).lower()}")
        switched_on = {name for name, value in values.items() if value}
        return replace(self, on=(self.on - values.keys()) | switched_on)

    def aiming_at(self, target: str) -> FeatureGates:
        """The same gates under the rules of another release.

        Raises:
            ValueError: its rules are not known; lists those that are.
        """
        if target not in TARGETS:
            raise ValueError(f"unknown target {target!r}; known: {', '.join(TARGETS)}")
        return replace(self, target=target)

    @property
    def checks_hierarchies(self) -> bool:
        """Whether the rules of v1.38 for hierarchies of groups hold (statement 55)."""
        return self.target != TARGETS[0]

    def enabled(self, name: str) -> bool:
        """Whether the gate of this name is on.

        Raises:
            ValueError: there is no such gate.
        """
        return name in self.on or _known(name) is None

    @property
    def generic_workload(self) -> bool:
        return "GenericWorkload" in self.on

    @property
    def topology(self) -> bool:
        return "TopologyAwareWorkloadScheduling" in self.on

    @property
    def composite_pod_group(self) -> bool:
        return "CompositePodGroup" in self.on

    @property
    def pod_group_preemption_policy(self) -> bool:
        return "PodGroupPreemptionPolicy" in self.on

    @property
    def workload_resource_claims(self) -> bool:
        return "DRAWorkloadResourceClaims" in self.on

    @property
    def workload_with_job(self) -> bool:
        return "WorkloadWithJob" in self.on

    @property
    def resize_preemption(self) -> bool:
        return "InPlacePodVerticalScalingSchedulerPreemption" in self.on

    @property
    def merges_spread_keys(self) -> bool:
        """Whether the server puts `matchLabelKeys` of spread constraints into their selectors."""
        return "MatchLabelKeysInPodTopologySpreadSelectorMerge" in self.on

    def __str__(self) -> str:
        """What differs from the defaults, as `parse` reads it."""
        return ",".join(
            f"{name}={str(name in self.on).lower()}"
            for name, gate in GATES.items()
            if (name in self.on) != gate.default
        )


def _known(name: str) -> Gate:
    gate = GATES.get(name)
    if gate is not None:
        return gate
    if name in MERGED:
        raise ValueError(f"feature gate {name} was removed in v1.37: it is part of {MERGED[name]} now")
    near = difflib.get_close_matches(name, GATES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(GATES))}"
    raise ValueError(f"unknown feature gate {name!r}; {hint}")


def _lacking(name: str, on: Iterable[str]) -> list[str]:
    """The gates that this one needs and that are off."""
    return [need for need in _known(name).needs if need not in on]


def _without_support(on: frozenset[str]) -> list[str]:
    """The gates that are on and would have to go off for the others to have what they need."""
    kept = set(on)
    while unsupported := [name for name in kept if _lacking(name, kept)]:
        kept.difference_update(unsupported)
    return sorted(on - kept)


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _values(names: Iterable[str], value: bool) -> str:
    return ",".join(f"{name}={str(value).lower()}" for name in names)


def _pairs(text: str) -> Iterable[tuple[str, bool]]:
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or value.lower() not in ("true", "false"):
            raise ValueError(f"feature gate {part!r}: want NAME=true or NAME=false, for example GenericWorkload=true")
        yield name, value.lower() == "true"
