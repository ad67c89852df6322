from dataclasses import dataclass

import pytest

from muster.engine.profile import Profile, ProfileError, build_profile
from muster.plugins import BUILT_IN, default_profile
from muster.plugins.pack import Pack
from muster.plugins.taints import Taints


@dataclass(frozen=True)
class Mute:
    name: str = "mute"


@pytest.mark.parametrize(
    ("names", "weights", "says"),
    [
        (["taints", "tains"], {}, 'no plugin is called "tains"; known: balanced, device_claims'),
        (["pack", "pack"], {}, 'plugin "pack" is listed twice'),
        (["taints"], {"pack": 1}, 'weight for "pack", which is not in the profile; it has: taints'),
        (["taints", "ports"], {"ports": 1}, 'plugin "ports" does not score; weights are for: taints'),
        (["pack"], {"pack": 101}, 'weight of "pack" is 101; give a whole number from 0 to 100'),
        (["pack"], {"pack": -1}, "from 0 to 100"),
        (["pack"], {"pack": True}, "give a whole number"),
    ],
)
def test_a_wrong_profile_is_refused_with_what_to_write_instead(names, weights, says):
    with pytest.raises(ProfileError, match=says.replace("(", r"\(")):
        build_profile(names, weights, BUILT_IN)


def test_a_plugin_that_does_nothing_is_refused():
    with pytest.raises(ProfileError, match='"mute" has none of filter, rows, score and relate'):
        Profile((Mute(),))


def test_weight_zero_switches_a_score_off_and_none_given_is_one():
    profile = Profile((Taints(), Pack()), {"pack": 0})
    assert profile.scores == ((Taints(), 1),)


def test_the_default_profile_filters_in_the_order_of_the_reasons():
    profile = default_profile()
    for plugins in (profile.filters, profile.capacities):
        reasons = [plugin.reason for plugin in plugins]
        assert reasons == sorted(reasons)


def test_names_are_those_under_which_plugins_are_known():
    assert all(factory().name == name for name, factory in BUILT_IN.items())
