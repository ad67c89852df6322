import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.ledger import Ledger

NODES, ROWS, CLASSES = 5, 3, 3
single = st.tuples(st.integers(0, CLASSES - 1), st.integers(0, NODES - 1), st.integers(1, 4))
many = st.tuples(
    st.integers(0, CLASSES - 1),
    st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(1, 4)), unique_by=lambda p: p[0]),
)


def ledger():
    amounts = np.array([[1, 0, 2], [0, 5, 1], [7, 7, 0]], dtype=np.int64)
    used = np.arange(ROWS * NODES, dtype=np.int64).reshape(ROWS, NODES)
    return Ledger(np.full((ROWS, NODES), 1000, dtype=np.int64), used, amounts)


def do(book, steps):
    for step in steps:
        if len(step) == 3:
            book.place(*step)
        else:
            cls, pairs = step
            book.place_many(cls, np.array([n for n, _ in pairs], dtype=int), np.array([c for _, c in pairs], dtype=int))


@given(st.lists(single | many), st.lists(single | many))
def test_rolling_back_restores_every_amount_and_the_log(kept, undone):
    book = ledger()
    do(book, kept)
    before, checkpoint = book.used.copy(), book.checkpoint()
    do(book, undone)
    book.rollback(checkpoint)
    assert (book.used == before).all()
    assert book.checkpoint() == checkpoint


@given(st.lists(single | many, min_size=1))
def test_what_was_undone_can_be_placed_again(steps):
    book = ledger()
    do(book, steps)
    after, placements = book.used.copy(), list(book.since(0))
    book.rollback(0)
    book.replay(placements)
    assert (book.used == after).all()


@given(st.lists(single | many))
def test_usage_is_the_sum_of_what_was_placed(steps):
    book = ledger()
    expected = book.used.copy()
    do(book, steps)
    for cls, nodes, counts in book.since(0):
        for node, count in zip(np.atleast_1d(nodes), np.atleast_1d(counts), strict=True):
            expected[:, node] += book.amounts[cls] * count
    assert (book.used == expected).all()


@settings(max_examples=50)
@given(st.lists(single | many), st.integers(0, NODES - 1))
def test_a_column_key_tells_states_of_a_node_apart(steps, node):
    book = ledger()
    empty = book.column(node)
    before = book.used[:, node].copy()
    do(book, steps)
    assert (book.column(node) == empty) == bool((book.used[:, node] == before).all())


def test_the_given_usage_is_never_changed():
    used = np.zeros((ROWS, NODES), dtype=np.int64)
    book = Ledger(used + 10, used, np.ones((1, ROWS), dtype=np.int64))
    book.place(0, 1, 3)
    assert not used.any()
