"""Where a group needs several domains: as few as can be, equal shares where they divide, ranks in runs (M16)."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.decide import decide
from muster.engine.work import Work
from muster.plugins import default_profile
from muster.testing import builders
from muster.testing.strategies import instances

PROFILE = default_profile()
BLOCK, RACK = "block", "rack"
LEVELS = (BLOCK, RACK)
PATH = {BLOCK: 0, RACK: 1}


def cluster(free):
    """`free[b][r]`: pods of one accelerator that rack r of block b still takes, on nodes of two; with who is there."""
    nodes, taken = [], []
    for b, racks in enumerate(free):
        for r, left in enumerate(racks):
            for n in range((left + 1) // 2 or 1):
                name = f"b{b}-r{r}-n{n}"
                nodes.append(builders.node(name, gpus=2, labels={BLOCK: f"b{b}", RACK: f"b{b}-r{r}"}))
                here = min(left - 2 * n, 2)
                if here < 2:
                    taken.append(builders.pod(f"x-{name}", gpus=2 - here, node=name))
    return nodes, taken


def decided(nodes, taken, pods, running=(), **group):
    """Rank -> node of the pods that are bound."""
    head = builders.entry(*pods, group=builders.group("g", len(pods) + len(running), **group), bound=tuple(running))
    snapshot = builders.snapshot(nodes, [*taken, *running], levels=LEVELS)
    decision = decide(snapshot, (head,), PROFILE, now=0, budget=Work())
    rank = {pod.key: pod.rank for pod in pods}
    return {rank[bind.pod]: bind.node for bind in decision.plans[0].binds}


def member(name, rank, **fields):
    return replace(builders.pod(name, group="g", **fields), rank=rank)


def ranked(numbers, node=None):
    return [member(f"p{n:02}", n, gpus=1, node=node) for n in numbers]


def domain(node, level):
    return tuple(node.split("-")[: PATH[level] + 1])


def counts(where, level):
    return Counter(domain(node, level) for node in where.values())


def breaks(where, level):
    in_order = [domain(where[rank], level) for rank in sorted(where)]
    return sum(a != b for a, b in pairwise(in_order))


def test_eight_pods_that_need_two_racks_are_four_and_four():
    where = decided(*cluster([[6, 6, 4]]), ranked(range(8)))
    assert sorted(counts(where, RACK).values()) == [4, 4]


def test_ranks_fill_one_rack_after_the_other():
    where = decided(*cluster([[6, 6]]), ranked((5, 2, 7, 0, 3, 6, 1, 4)))
    assert {where[rank][:5] for rank in range(4)} == {"b0-r0"}
    assert {where[rank][:5] for rank in range(4, 8)} == {"b0-r1"}
    assert breaks({rank: node.replace("-n", "n") for rank, node in where.items()}, RACK) == 3


def test_no_third_rack_is_used_for_the_sake_of_equal_shares():
    where = decided(*cluster([[7, 5, 5]]), ranked(range(12)))
    assert sorted(counts(where, RACK).values()) == [5, 7]


def test_equal_shares_at_both_levels():
    where = decided(*cluster([[3, 3, 3], [3, 3, 3]]), ranked(range(12)))
    assert sorted(counts(where, BLOCK).values()) == [6, 6]
    assert sorted(counts(where, RACK).values()) == [3, 3, 3, 3]


def test_a_block_where_one_rack_does_is_better_than_a_tighter_one():
    where = decided(*cluster([[2, 2], [4, 1]]), ranked(range(4)))
    assert counts(where, RACK) == {("b1", "r0"): 4}


def test_names_that_end_in_numbers_are_ranks_too():
    pods = [builders.pod(f"p-{n}", gpus=1, group="g") for n in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)]
    head = builders.entry(*pods, group=builders.group("g", 12))
    nodes, taken = cluster([[6, 6]])
    plan = decide(builders.snapshot(nodes, taken, levels=LEVELS), (head,), PROFILE, now=0, budget=Work()).plans[0]
    racks = {int(bind.pod.name[2:]): bind.node[:5] for bind in plan.binds}
    assert [racks[n] for n in range(12)] == ["b0-r0"] * 6 + ["b0-r1"] * 6


def test_unlike_roles_are_shared_out_equally_too():
    workers = [member(f"w{n}", n, gpus=1) for n in range(4)]
    sidecars = [member(f"s{n}", n, cpu=100) for n in range(4)]
    head = builders.entry(*workers, *sidecars, group=builders.group("g", 8))
    nodes, taken = cluster([[3, 3]])
    plan = decide(builders.snapshot(nodes, taken, levels=LEVELS), (head,), PROFILE, now=0, budget=Work()).plans[0]
    racks = {bind.pod.name: bind.node[:5] for bind in plan.binds}
    for role in "ws":
        assert [racks[f"{role}{n}"] for n in range(4)] == ["b0-r0", "b0-r0", "b0-r1", "b0-r1"]


def test_new_members_go_into_the_rack_of_running_ones():
    nodes, taken = cluster([[2, 6, 2]])
    running = ranked((0, 1), node="b0-r1-n0")
    where = decided(nodes, taken, ranked((2, 3)), running)
    assert counts(where, RACK) == {("b0", "r1"): 2}


def test_growth_evens_out_what_runs():
    nodes, taken = cluster([[4, 4]])
    running = [*ranked((0, 1), node="b0-r0-n0"), *ranked((2,), node="b0-r0-n1")]
    where = decided(nodes, taken, ranked((3, 4, 5, 6, 7)), running)
    assert counts(where, RACK) == {("b0", "r0"): 1, ("b0", "r1"): 4}
    assert where[3].startswith("b0-r0")


def test_new_ranks_stand_beside_their_running_neighbours():
    """Ranks 0-3 run in the second rack: the next ones go there first."""
    nodes, taken = cluster([[4, 6]])
    running = [*ranked((0, 1), node="b0-r1-n0"), *ranked((2, 3), node="b0-r1-n1")]
    where = decided(nodes, taken, ranked((4, 5, 6, 7, 8)), running)
    assert [where[rank][:5] for rank in range(4, 9)] == ["b0-r1"] * 2 + ["b0-r0"] * 3


def test_a_lost_rank_comes_back_beside_its_neighbours():
    nodes, taken = cluster([[4, 4]])
    running = [
        *ranked((0, 1), node="b0-r0-n0"),
        *ranked((2,), node="b0-r0-n1"),
        *ranked((4, 5), node="b0-r1-n0"),
        *ranked((6,), node="b0-r1-n1"),
    ]
    where = decided(nodes, taken, ranked((3, 7)), running)
    assert where[3] == "b0-r0-n1"
    assert where[7] == "b0-r1-n1"


ROOMS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=3)


def fewest(rooms, size):
    """The fewest of these rooms that hold so many, and whether so many equal shares are possible; by trying all."""
    for k in range(1, len(rooms) + 1):
        some = [c for c in combinations(rooms, k) if sum(c) >= size]
        if some:
            return k, size % k == 0 and any(min(c) * k >= size for c in some)
    return None


@settings(max_examples=150, deadline=None)
@given(ROOMS, st.integers(2, 24), st.randoms(use_true_random=False))
def test_fewest_domains_equal_shares_and_runs_of_ranks(free, size, order):
    pods = ranked(range(size))
    order.shuffle(pods)
    where = decided(*cluster(free), pods)
    if size > sum(map(sum, free)):
        assert where == {}
        return
    assert sorted(where) == list(range(size))
    blocks = counts(where, BLOCK)
    number, even = fewest([sum(racks) for racks in free], size)
    assert len(blocks) == number
    assert not even or len(set(blocks.values())) == 1
    if number == 1:
        assert len(counts(where, RACK)) == min(found[0] for racks in free if (found := fewest(racks, size)))
    for (name,), share in blocks.items():
        racks = {rack: n for rack, n in counts(where, RACK).items() if rack[0] == name}
        number, even = fewest(free[int(name[1:])], share)
        assert len(racks) == number
        assert not even or len(set(racks.values())) == 1
    for level in LEVELS:
        assert breaks(where, level) == len(counts(where, level)) - 1


def every_way(free, size):
    """All ways to put so many alike pods into rooms."""
    return [way for way in product(*(range(room + 1) for room in free)) if sum(way) == size]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=4),
    st.integers(1, 8),
)
def test_growth_uses_as_few_new_racks_as_can_be_and_evens_out_if_it_can(racks, size):
    """`racks[r]`: members that run there, and how many more it takes."""
    nodes, running, taken = [], [], []
    for r, (there, left) in enumerate(racks):
        name = f"b0-r{r}-n0"
        nodes.append(builders.node(name, gpus=8, labels={BLOCK: "b0", RACK: f"b0-r{r}"}))
        running += [member(f"r{r}-{n}", 100 + 10 * r + n, gpus=1, node=name) for n in range(there)]
        taken.append(builders.pod(f"x{r}", gpus=8 - there - left, node=name))
    taken = [pod for pod in taken if dict(pod.cls.requests).get(builders.GPU)]
    where = decided(nodes, taken, ranked(range(size)), running)
    ways = every_way([left for _, left in racks], size)
    if not ways:
        assert where == {}
        return
    new = [sum(1 for (there, _), n in zip(racks, way, strict=True) if n and not there) for way in ways]
    best = [way for way, number in zip(ways, new, strict=True) if number == min(new)]
    placed = counts(where, RACK)
    way = tuple(placed.get(("b0", f"r{r}"), 0) for r in range(len(racks)))
    assert way in best
    evened = [
        way for way in best if len({there + n for (there, _), n in zip(racks, way, strict=True) if there or n}) == 1
    ]
    assert not evened or way in evened


@settings(max_examples=50, deadline=None)
@given(instances(heads=1, by_name=False), st.lists(st.sampled_from(("b0 r0", "b0 r1", "b1 r2", "")), min_size=6))
def test_closeness_costs_no_member_its_place(found, places):
    """Unlike members too: as many are placed with topology levels as without them."""
    nodes = [
        replace(node, labels={**node.labels, **dict(zip(LEVELS, place.split(), strict=False))})
        for node, place in zip(found.nodes, places, strict=False)
    ]
    placed = []
    for levels in ((), LEVELS):
        known = {name for pod in found.pods for name, _ in pod.cls.requests}
        snapshot = builders.snapshot(nodes, found.bound, levels=levels, known=known)
        placed.append(sum(len(p.binds) for p in decide(snapshot, found.heads, PROFILE, now=0, budget=Work()).plans))
    assert placed[0] == placed[1]
