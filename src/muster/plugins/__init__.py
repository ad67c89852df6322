"""Built-in policies, one per file; the profile decides which are asked, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from muster.engine.extension import Plugin
from muster.engine.profile import Profile, build_profile
from muster.plugins.balanced import Balanced
from muster.plugins.devices import DeviceClaims, DeviceReach, Devices
from muster.plugins.image_locality import ImageLocality
from muster.plugins.node_features import NodeFeatures
from muster.plugins.node_selection import NodeSelection, NodeUnschedulable
from muster.plugins.pack import Pack
from muster.plugins.pod_affinity import PodAffinity
from muster.plugins.ports import Ports
from muster.plugins.resources_fit import ResourcesFit
from muster.plugins.spread import Spread
from muster.plugins.taints import Taints
from muster.plugins.topology_spread import TopologySpread
from muster.plugins.volume_binding import VolumeBinding
from muster.plugins.volume_claims import VolumeClaims
from muster.plugins.volume_limits import VolumeDrivers, VolumeLimits
from muster.plugins.volume_restrictions import VolumeRestrictions
from muster.plugins.volume_zone import VolumeZone

BUILT_IN: Mapping[str, Callable[[], Plugin]] = {
    "node_unschedulable": NodeUnschedulable,
    "taints": Taints,
    "node_selection": NodeSelection,
    "ports": Ports,
    "resources_fit": ResourcesFit,
    "topology_spread": TopologySpread,
    "pod_affinity": PodAffinity,
    "node_features": NodeFeatures,
    "volume_claims": VolumeClaims,
    "volume_binding": VolumeBinding,
    "volume_zone": VolumeZone,
    "volume_drivers": VolumeDrivers,
    "volume_limits": VolumeLimits,
    "volume_restrictions": VolumeRestrictions,
    "device_claims": DeviceClaims,
    "device_reach": DeviceReach,
    "devices": Devices,
    "pack": Pack,
    "spread": Spread,
    "balanced": Balanced,
    "image_locality": ImageLocality,
}
"""Name -> factory, in the default order: filters from cheap to telling, then scores."""

DEFAULT_WEIGHTS: Mapping[str, int] = {
    "taints": 3,
    "node_selection": 2,
    "topology_spread": 2,
    "pod_affinity": 2,
    "pack": 1,
    "spread": 1,
    "balanced": 1,
    "image_locality": 1,
}
"""What a user wrote down (taints, preferred affinity) weighs more than what the scheduler finds neat."""


def default_profile() -> Profile:
    """All built-in plugins with their default weights."""
    return build_profile(tuple(BUILT_IN), DEFAULT_WEIGHTS, BUILT_IN)
