"""The arithmetic of rollouts: limits, steps, and shares of a new size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.object import Object
from muster.controllers.apps.deployments import sizes
from muster.controllers.apps.deployments.sizes import Limits
from muster.controllers.apps.deployments.versions import Version
from muster.controllers.apps.deployments.versions import sizes as annotations


def version(
    number: int, size: int, available: int = 0, *, there: int | None = None, scaled: Limits | None = None
) -> Version:
    """One that was created as the `number`th."""
    meta = {
        "name": f"web-{number}",
        "uid": str(number),
        "creationTimestamp": f"2026-01-01T00:00:{number:02d}Z",
        "annotations": annotations(scaled.wanted, scaled.most) if scaled else {},
    }
    status = {"replicas": size if there is None else there, "readyReplicas": available, "availableReplicas": available}
    return Version.of(Object({"metadata": meta, "spec": {"replicas": size}, "status": status}))


def limits(wanted: int, surge: int | str, missing: int | str) -> Limits:
    rolling = {"maxSurge": surge, "maxUnavailable": missing}
    return Limits.of({"replicas": wanted, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})


@pytest.mark.parametrize(
    ("wanted", "surge", "missing", "most", "least"),
    [
        (10, "25%", "25%", 13, 8),
        (3, "25%", "25%", 4, 3),
        (1, "25%", "25%", 2, 1),
        (4, 0, "10%", 4, 3),
        (4, 0, 0, 4, 3),
        (4, "1%", 0, 5, 4),
        (2, 5, 9, 7, 0),
        (10, "200%", 0, 30, 10),
        (0, 0, 0, 0, 0),
    ],
)
def test_surge_is_rounded_up_and_what_may_be_missing_down_but_never_are_both_nothing(
    wanted, surge, missing, most, least
):
    found = limits(wanted, surge, missing)
    assert (found.most, found.least) == (most, least)


def test_recreation_knows_no_surge():
    found = Limits.of({"replicas": 5, "strategy": {"type": "Recreate"}})
    assert (found.most, found.least, found.rolling) == (5, 5, False)


amounts = st.one_of(st.integers(0, 10), st.integers(0, 100).map(lambda percent: f"{percent}%"))


@st.composite
def rollouts(draw):
    found = limits(draw(st.integers(0, 20)), draw(amounts), draw(amounts))
    versions = []
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(0, 12))
        versions.append(version(number, size, draw(st.integers(0, size)), there=draw(st.integers(0, 14))))
    return found, versions[-1], versions[:-1]


@given(rollouts())
def test_no_step_goes_beyond_what_is_allowed(rollout):
    found, new, old = rollout
    wanted = sizes.rolling(found, new, old)
    everyone = [*old, new]
    after = {each.uid: wanted.get(each.uid, each.size) for each in everyone}
    assert all(size >= 0 for size in after.values())
    assert all(after[each.uid] <= each.size for each in old)
    if after[new.uid] > new.size:
        assert sum(max(after[each.uid], each.there) for each in everyone) <= found.most
    if any(after[each.uid] < each.size for each in old):
        before = sum(min(each.available, each.size) for each in everyone)
        kept = sum(min(each.available, after[each.uid]) for each in everyone)
        assert kept >= min(before, found.least)


@given(rollouts())
def test_steps_lead_to_the_new_version_if_pods_become_available(rollout):
    found, new, old = rollout
    for _ in range(200):
        wanted = sizes.rolling(found, new, old)
        *old, new = (
            version(int(each.uid), wanted.get(each.uid, each.size), wanted.get(each.uid, each.size))
            for each in (*old, new)
        )
        if not wanted and not sizes.rolling(found, new, old):
            break
    assert new.size == found.wanted
    assert sum(each.size for each in old) == 0


@given(rollouts(), st.integers(0, 30))
def test_a_new_size_is_divided_without_rest(rollout, wanted):
    before, new, old = rollout
    old = [version(int(each.uid), each.size, scaled=before) for each in old]
    new = version(int(new.uid), new.size, scaled=before)
    found = before._replace(wanted=wanted)
    divided = sizes.scaled(found, new, old, 0)
    after = [divided.get(each.uid, each.size) for each in (*old, new)]
    assert all(size >= 0 for size in after)
    active = [each for each in (*old, new) if each.size]
    if len(active) > 1:
        assert sum(after) == (found.most if wanted else 0)
    else:
        assert sum(after) == wanted


def test_every_version_keeps_its_share():
    before, found = limits(10, 3, 2), limits(15, 3, 2)
    old, new = version(1, 8, scaled=before), version(2, 5, scaled=before)
    assert sizes.scaled(found, new, [old], 13) == {"1": 11, "2": 7}
    assert sizes.scaled(limits(5, 3, 2), new, [old], 13) == {"1": 5, "2": 3}
    assert sizes.scaled(limits(0, 3, 2), new, [old], 13) == {"1": 0, "2": 0}


def test_while_a_version_has_not_been_seen_by_its_controller_nothing_is_decided():
    found = limits(3, 1, 0)
    old, new = version(1, 3, 3), version(2, 0)
    assert sizes.rolling(found, new, [old]) == {"2": 1}
    assert sizes.rolling(found, new, [old._replace(settled=False)]) == {}
    assert sizes.first_size(found, [old]) == 1
    assert sizes.first_size(found, [old._replace(settled=False)]) == 0
