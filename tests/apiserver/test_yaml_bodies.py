"""Bodies in YAML: their values, and that none of them holds the server up."""

import time

import pytest

from muster.apiserver import status, yaml_bodies

HOSTILE = [
    b"[" * 100_000,
    b"a: " + b"[" * 3000 + b"]" * 3000,
    b"- " * 3000 + b"x",
    b"? " * 3000,
    b"{a: " * 5000,
    b"[" + b"1," * 1_000_000 + b"1]",
    b"a: &a [x]\nb: [*a, *a]",
    b'a: !!int "' + b":".join([b"1"] * 100_000) + b'"',
    b"a: !!binary aGk=",
    b"a: !!python/object:os.system x",
    b"a: 1" + b"0" * 10_000,
    b"\xff\xfe\x00",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_refused_before_it_takes_long(text):
    start = time.process_time()
    with pytest.raises(status.Failure) as caught:
        yaml_bodies.value_of(text)
    assert caught.value.code == 400
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a: 1\nb: -2\nc: 0x10\nd: 010\ne: 0\nf: +7", {"a": 1, "b": -2, "c": 16, "d": 8, "e": 0, "f": 7}),
        (b"a: 1.5\nb: 1e3\nc: .5\nd: -1.0e+2", {"a": 1.5, "b": 1000.0, "c": 0.5, "d": -100.0}),
        (b"a: 2026-01-01\nb: 1:30\nc: 1:1:1.5\nd: !!str 5", {"a": "2026-01-01", "b": "1:30", "c": "1:1:1.5", "d": "5"}),
        (b"a: yes\nb: ~\nc: 'no'\nd: [x, {y: z}]", {"a": True, "b": None, "c": "no", "d": ["x", {"y": "z"}]}),
        (b"a: " + b":".join([b"1"] * 20_000), {"a": ":".join(["1"] * 20_000)}),
    ],
)
def test_values_are_those_of_json(text, value):
    assert yaml_bodies.value_of(text) == value
