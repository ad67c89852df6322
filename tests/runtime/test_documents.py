from __future__ import annotations

from pathlib import Path

import pytest

from muster.runtime.documents import DocumentError, parse, read


def values(text: str) -> list[object]:
    return [document.value for document in parse(text, "x.yaml")]


def test_words_that_yaml_takes_for_booleans_and_dates_stay_text() -> None:
    text = "a: on\nb: no\nc: 2026-11-30\nd: 2026-11-30T10:00:00Z\ne: true\nf: False"
    assert values(text) == [
        {"a": "on", "b": "no", "c": "2026-11-30", "d": "2026-11-30T10:00:00Z", "e": True, "f": False}
    ]


def test_each_document_knows_where_it_begins() -> None:
    assert [document.source for document in parse("a: 1\n---\n---\nb: 2\n", "x.yaml")] == ["x.yaml:1", "x.yaml:4"]


def test_json_is_read_as_well() -> None:
    assert values('{"a": [1, "2"]}') == [{"a": [1, "2"]}]


def test_anchors_and_merge_keys_work() -> None:
    assert values("base: &b {x: 1}\nmore: {<<: *b, y: 2}") == [{"base": {"x": 1}, "more": {"x": 1, "y": 2}}]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: 1\nb: 2\na: 3", 'x.yaml:3: key "a" is given twice (line 1 too); keep one'),
        ("a: {b: 1, b: 2}", 'key "b" is given twice'),
        ("1: a", "x.yaml:1: key 1 must be text; put it in quotes"),
        ("a: [1, 2", "x.yaml:1: "),
        ("a: b: c", "x.yaml:1: mapping values are not allowed here"),
        ("a: *nobody", "undefined alias"),
        ("a: \x07", "x.yaml: not YAML or JSON"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a:\n  !!bool yes", "x.yaml:2: 'yes' is no boolean; write true or false"),
        ("a: !!timestamp nonsense", "x.yaml:1: could not determine a constructor"),
        ("a: !!binary '=x'", "x.yaml:1: could not determine a constructor"),
        ("a: !!set {b, c}", "x.yaml:1: could not determine a constructor"),
        ("a: !!bool [b]", "x.yaml:1: expected a scalar node"),
        ("a: !!int ''", "x.yaml:1: '' is no number"),
        ("a: !!int many", "x.yaml:1: 'many' is no number"),
        ("a: 1\nb: !!float many", "x.yaml:2: 'many' is no number"),
        ("a: 1\nb: .inf", "x.yaml:2: '.inf' is no number that JSON has"),
        ("a: .nan", "x.yaml:1: '.nan' is no number that JSON has"),
        ("a: 1\nb: " + "9" * 5000, "x.yaml:2: '9999"),
        ("!!map x", "x.yaml:1: expected a mapping node"),
        ("a: &x\n  - 1\n  - *x", "x.yaml:1: an alias leads back to itself"),
        ("a: &x {b: *x}", "an alias leads back to itself"),
        ("a: &x {<<: *x}", "an alias leads back to itself"),
        ('a: 1\nb: "\\ud800"', "x.yaml:2: half of a surrogate pair"),
        ('"\\udc00": 1', "x.yaml:1: half of a surrogate pair"),
        ("[" * 20_000, "nested too deep"),
        ("[" * 150 + "]" * 150, "x.yaml:1: nested too deep; at most 100 levels"),
    ],
)
def test_a_malformed_text_is_refused_with_its_line(text: str, wanted: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse(text, "x.yaml")
    assert wanted in str(refused.value)


def laughs(levels: int, line: str) -> str:
    """A text of few lines, each of which stands for ten times the one before."""
    lines = [f"l{i}: &l{i} " + line.replace("X", f"*l{i - 1}") for i in range(1, levels)]
    return "\n".join(["l0: &l0 {a: 1}", *lines])


@pytest.mark.parametrize("line", ["[" + "X, " * 9 + "X]", "{<<: [" + "X, " * 9 + "X]}"], ids=["values", "merge keys"])
def test_aliases_that_would_grow_without_bound_are_refused_before_they_do(line: str) -> None:
    with pytest.raises(DocumentError, match=r"x\.yaml:1: its aliases stand for more than 3000000 characters"):
        parse(laughs(9, line), "x.yaml")


def test_aliases_of_a_long_text_are_refused_as_well() -> None:
    with pytest.raises(DocumentError, match="its aliases stand for more than"):
        parse("a: &a " + "x" * 100_000 + "\nb: [" + ", ".join(["*a"] * 100) + "]", "x.yaml")


def test_aliases_that_chain_into_a_deep_value_are_refused() -> None:
    chain = "\n".join(["- &l0 a", *(f"- &l{i} [*l{i - 1}]" for i in range(1, 5000))])
    with pytest.raises(DocumentError, match="nested too deep"):
        parse(chain, "x.yaml")


def test_large_documents_without_aliases_are_not_bounded_by_them() -> None:
    text = "x" * 3_100_000
    assert values(f"base: &b {{x: 1}}\nmany: ['{text}', *b]") == [{"base": {"x": 1}, "many": [text, {"x": 1}]}]


def test_a_character_written_as_two_escapes_is_one() -> None:
    assert values('{"a": "\\ud83d\\ude00"}') == [{"a": "\U0001f600"}]


def test_an_equals_sign_is_text() -> None:
    assert values("a: =\nb: !!str 7\nc: !!bool True\nd: !!int '7'") == [{"a": "=", "b": "7", "c": True, "d": 7}]


def test_a_directory_is_read_file_by_file_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("n: 2")
    (tmp_path / "a.json").write_text('{"n": 1}')
    (tmp_path / "c.txt").write_text("n: 3")
    assert [document.value for document in read(tmp_path)] == [{"n": 1}, {"n": 2}]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\xfe")
    for path, wanted in (
        (tmp_path / "gone.yaml", "no such file or directory"),
        (tmp_path / "latin.yaml", "not UTF-8 text; save it as UTF-8"),
    ):
        with pytest.raises(DocumentError, match=wanted):
            read(path)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DocumentError, match=r"no \.yaml, \.yml, \.json file"):
        read(empty)
