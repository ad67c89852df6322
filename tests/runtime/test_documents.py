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
    ],
)
def test_a_malformed_text_is_refused_with_its_line(text: str, wanted: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse(text, "x.yaml")
    assert wanted in str(refused.value)


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
