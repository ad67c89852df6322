"""Shortcuts of writing: who owns the fields of new objects, and whether a text says something twice."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from muster.apiserver import decode, fieldsets, outlines
from muster.apiserver.shapes import shape

POD = shape("v1", "Pod")
WORDS = st.sampled_from(["", "a", "b"])
MAPS = st.dictionaries(st.sampled_from(["a", "b", "c"]), WORDS, max_size=3)


def some(**fields):
    """Any of these fields, in any order."""
    return st.permutations(sorted(fields)).flatmap(
        lambda names: st.fixed_dictionaries({}, optional={name: fields[name] for name in names})
    )


def lists(item, most=2):
    return st.lists(item, max_size=most)


PORTS = some(containerPort=st.sampled_from([80, 81, 80.0, True]), protocol=st.sampled_from(["TCP", "UDP"]), name=WORDS)
CONTAINERS = some(
    name=WORDS,
    image=WORDS,
    args=lists(WORDS),
    env=lists(some(name=WORDS, value=WORDS, valueFrom=some(fieldRef=some(fieldPath=WORDS)))),
    ports=lists(PORTS),
    resources=some(limits=MAPS, requests=MAPS),
    securityContext=some(capabilities=some(add=lists(WORDS)), privileged=st.booleans()),
)
PODS = some(
    apiVersion=st.just("v1"),
    kind=st.just("Pod"),
    metadata=some(
        name=WORDS,
        uid=WORDS,
        labels=MAPS,
        annotations=MAPS | st.none(),
        finalizers=lists(WORDS),
        ownerReferences=lists(some(uid=WORDS, name=WORDS)),
    ),
    spec=some(
        containers=lists(CONTAINERS), nodeSelector=MAPS, tolerations=lists(some(key=WORDS)), hostAliases=st.none()
    ),
    status=some(phase=WORDS, conditions=lists(some(type=WORDS, status=WORDS)), podIPs=lists(some(ip=WORDS))),
)


@settings(max_examples=500, deadline=None)
@given(PODS, st.booleans())
def test_an_outline_says_which_fields_there_are(pod, status):
    """The outlines of earlier examples are remembered, so that each example may meet one that is like another."""
    found = fieldsets.compare(POD, None, pod)
    expected = {path for path in found.added | found.modified if status or path[0] != "f:status"}
    assert outlines.fields_made(POD, pod, status=status) == expected


def test_objects_that_differ_in_values_alone_share_their_fields():
    def pod(name, rank):
        container = {"name": "c", "image": "i", "env": [{"name": "RANK", "value": rank}]}
        return {"metadata": {"name": name, "labels": {"job": name}}, "spec": {"containers": [container]}}

    assert outlines.fields_made(POD, pod("a", "1")) is outlines.fields_made(POD, pod("b", "2"))


def test_no_more_outlines_are_remembered_than_allowed(monkeypatch):
    monkeypatch.setattr(outlines, "MOST_KNOWN", 3)
    monkeypatch.setattr(outlines, "_known", {})
    for number in range(10):
        labels = {f"label-{number}": "x"}
        assert outlines.fields_made(POD, {"metadata": {"labels": labels}}) == {
            ("f:metadata", "f:labels"),
            ("f:metadata", "f:labels", f"f:label-{number}"),
        }
        assert len(outlines._known) <= 3


TEXTS = st.sampled_from(["", "a", ":", '":', '"', " :", "\n:", "\\", "é", '\\":'])
VALUES = st.recursive(
    TEXTS | st.sampled_from([1, -0.5, True, None]),
    lambda inner: st.lists(inner) | st.lists(st.tuples(TEXTS, inner), max_size=4).map(tuple),
)
SPACES = st.sampled_from(["", " ", "\n", "\t", "\r\n"])


@st.composite
def texts(draw, value):
    """JSON text of a value in which tuples are objects, whose members may come twice."""
    space, escaped = draw(SPACES), draw(st.booleans())

    def written(one):
        if isinstance(one, tuple):
            inner = [f"{space}{written(name)}{space}:{space}{written(part)}" for name, part in one]
            return "{" + ",".join(inner) + "}"
        if isinstance(one, list):
            return "[" + ",".join(map(written, one)) + "]"
        if escaped and isinstance(one, str):
            return '"' + "".join(f"\\u{ord(letter):04x}" for letter in one) + '"'
        return json.dumps(one, ensure_ascii=False)

    return written(value)


@settings(max_examples=500, deadline=None)
@given(VALUES.flatmap(texts))
@example('{"a":1,"a":"\\u0022:"}')
@example('{"a":1,"a" :2}')
def test_no_text_with_members_that_come_twice_is_taken_for_one_without(text):
    text = text.encode()
    if not decode.may_repeat(text, decode.from_bytes(text)):
        assert decode.duplicates(text) == []


def test_a_usual_text_is_read_once_only():
    text = json.dumps({"metadata": {"name": "a"}, "spec": {"containers": [{"image": ":latest"}]}}, indent=2).encode()
    assert not decode.may_repeat(text, decode.from_bytes(text))
