"""Built-in plugins keep the laws; plugins that break one are told which."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from muster.engine.extension import Rows
from muster.model.diagnosis import Reason
from muster.plugins import BUILT_IN
from muster.plugins.resources_fit import ResourcesFit
from muster.plugins.taints import Taints
from muster.testing.laws import LawBroken, check_plugin


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_plugin_keeps_the_laws(name):
    check_plugin(BUILT_IN[name]())


@dataclass(frozen=True)
class Pretty:
    """A sound score, for its subclasses to spoil."""

    name: str = "pretty"
    dynamic: bool = True

    def score_key(self, pod_class):
        return "all"

    def score(self, pod_class, view):
        return np.full(view.used.shape[1], 50, dtype=np.int64)


class Floats(Pretty):
    def score(self, pod_class, view):
        return super().score(pod_class, view) * 1.0


class TooShort(Pretty):
    def score(self, pod_class, view):
        return super().score(pod_class, view)[1:]


class TooMuch(Pretty):
    def score(self, pod_class, view):
        return super().score(pod_class, view) + 51


class Forgetful(Pretty):
    """Keeps a count, which no pure plugin may."""

    calls: ClassVar = [0]

    def score(self, pod_class, view):
        self.calls[0] += 1
        return super().score(pod_class, view) - self.calls[0]


class Meddling(Pretty):
    def score(self, pod_class, view):
        view.feasible[:] = False
        return super().score(pod_class, view)


class Comparing(Pretty):
    """A dynamic score that looks at other nodes."""

    def score(self, pod_class, view):
        return np.arange(view.used.shape[1], dtype=np.int64)


class Careless(Pretty):
    """Says all classes are alike, and treats them differently."""

    def score(self, pod_class, view):
        return super().score(pod_class, view) + len(pod_class.host_ports)


class Unhashable(Pretty):
    def score_key(self, pod_class):
        return ["all"]


class SecretlyDynamic(Pretty):
    def score(self, pod_class, view):
        return super().score(pod_class, view) + view.used[0] % 2


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (Floats(), "returns scores as int64"),
        (TooShort(), "returns scores as int64"),
        (TooMuch(), "scores from 0 to 100"),
        (Forgetful(), "is deterministic"),
        (Meddling(), "leaves its inputs untouched"),
        (Comparing(), "looks at each node by itself"),
        (Careless(), "answers alike for classes of one key"),
        (Unhashable(), "has a key that can be hashed"),
        (SecretlyDynamic(dynamic=False), "is static"),
        (Pretty(name=""), "has a name"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_score_that_breaks_a_law_is_told_which(plugin, law):
    check_plugin(Pretty())
    with pytest.raises(LawBroken, match=law):
        check_plugin(plugin)


class TaintsByUsage(Taints):
    def filter(self, pod_class, view):
        return super().filter(pod_class, view) & (view.used[0] == 0)


class TaintsWithoutKey(Taints):
    def filter_key(self, pod_class):
        return "always"


class TaintsThatExplainTooMuch(Taints):
    def details(self, pod_class, view):
        return [("everything", np.ones(len(view.nodes), dtype=bool))]


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (TaintsByUsage(), "is static: what is used changes no filter"),
        (TaintsWithoutKey(), "answers alike for classes of one key"),
        (TaintsThatExplainTooMuch(), "gives details only for nodes that it rejects"),
        (replace(Taints(), reason=Reason.GATED), "has a reason between 1 and 63"),
    ],
)
def test_a_filter_that_breaks_a_law_is_told_which(plugin, law):
    with pytest.raises(LawBroken, match=law):
        check_plugin(plugin)


class CountsInFloats(ResourcesFit):
    def rows(self, snapshot, classes):
        rows = super().rows(snapshot, classes)
        return Rows(rows.details, rows.capacity * 0.5, rows.used, rows.amounts)


class CountsTwice(ResourcesFit):
    """Asks for twice of what a pod will hold, so its own sums do not come out."""

    def rows(self, snapshot, classes):
        rows = super().rows(snapshot, classes)
        return rows._replace(amounts=rows.amounts * 2)


def test_limits_must_be_whole_numbers_of_the_right_shape():
    with pytest.raises(LawBroken, match="returns capacity as int64"):
        check_plugin(CountsInFloats())


def test_limits_must_come_to_the_same_when_pods_are_placed_one_by_one():
    with pytest.raises(LawBroken, match="counts amounts that add up"):
        check_plugin(CountsTwice())


@dataclass
class Loose:
    """Not frozen, so its settings may change while answers for them are kept."""

    name: str = "loose"


def test_a_plugin_must_be_a_frozen_record():
    with pytest.raises(LawBroken, match="is a frozen record"):
        check_plugin(Loose())


def test_a_record_that_extends_nothing_is_no_plugin():
    @dataclass(frozen=True)
    class Idle:
        name: str = "idle"

    with pytest.raises(LawBroken, match="extends something"):
        check_plugin(Idle())
