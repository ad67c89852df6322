"""Files are read as the format says, and wrong ones are answered by an error that names file, place and fix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muster.conformance.capabilities import BUILT, missing
from muster.conformance.cases import CaseError, find, load
from muster.conformance.run import run, select

CASES = Path(__file__).parents[2] / "conformance" / "cases"
GOOD = """\
name: {name}
area: gang
about: Something that is long enough.
strict: true
steps:
  - advance: 1s
  - expect: {{"on": {{p: n}}}}
"""


def write(folder: Path, text: str, name: str = "a-case") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text.format(name=name))
    return path


def test_every_given_case_can_be_read() -> None:
    cases = [load(path) for path in find([CASES])]
    assert len(cases) >= 600
    assert all(case.name == case.path.stem and case.area == case.path.parent.name for case in cases)


def test_the_cases_of_our_areas_keep_to_the_format() -> None:
    command = [sys.executable, str(CASES.parent / "check_cases.py"), "-a", "gang,queue,basic,elastic"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_every_need_of_a_given_case_is_a_known_capability() -> None:
    assert {need for path in find([CASES]) for need in load(path).needs} <= BUILT.keys()


def test_a_bare_on_is_text_and_no_boolean(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace('"on"', "on"))
    assert load(path).steps[1] == ("expect", {"on": {"p": "n"}})


WRONG = {
    "duplicate key": (GOOD + "strict: false\n", "duplicate key 'strict'"),
    "no YAML": ("name: [", "no valid YAML"),
    "no mapping": ("- a\n- b\n", "a case is a mapping"),
    "unknown key": (GOOD + "stepz: []\n", "unknown key 'stepz'; known keys: "),
    "unknown area": (GOOD.replace("gang", "gong"), "unknown area 'gong'; known areas: gang, queue"),
    "no area": (GOOD.replace("area: gang\n", ""), "area is missing"),
    "strict is text": (GOOD.replace("strict: true", "strict: yes"), "strict is missing or no true/false"),
    "no steps": (GOOD.split("steps:")[0], "steps: want a list of actions"),
    "two actions": (GOOD + "  - {{advance: 1s, restart: scheduler}}\n", "step 3: want exactly one action"),
    "unknown action": (GOOD + "  - explode: now\n", "step 3: unknown action 'explode'; known actions: create"),
    "bare release": (GOOD + "since: 1.38\n", 'want a quoted release such as "1.38"'),
    "needs is text": (GOOD + "needs: job\n", "needs: want a list of names"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_broken_file_is_refused_with_the_reason(tmp_path: Path, wrong: str) -> None:
    text, reason = WRONG[wrong]
    path = write(tmp_path, text)
    with pytest.raises(CaseError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ") and reason in str(error.value)


def test_a_builder_case_needs_input(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("gang", "builder"))
    with pytest.raises(CaseError, match="needs input"):
        load(path)


def test_a_missing_path_and_an_empty_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no such file or folder"):
        list(find([tmp_path / "nowhere"]))
    with pytest.raises(CaseError, match="no case files"):
        list(find([tmp_path]))


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert list(find([path, tmp_path])) == [path]


def test_cases_of_later_and_of_replaced_releases_are_not_selected(tmp_path: Path) -> None:
    write(tmp_path, GOOD + 'since: "1.38"\n', "later")
    write(tmp_path, GOOD + 'until: "1.37"\n', "present")
    write(tmp_path, GOOD + 'until: "1.9"\n', "past")
    assert [case.name for case in select([tmp_path])] == ["present"]
    assert [case.name for case in select([tmp_path], target="1.38")] == ["later"]


def test_needs_and_area_narrow_the_selection(tmp_path: Path) -> None:
    write(tmp_path, GOOD + "needs: [job]\n", "with-job")
    write(tmp_path, GOOD + "needs: [job, topology]\n", "with-both")
    write(tmp_path, GOOD, "with-none")
    assert [case.name for case in select([tmp_path], needs=["job"])] == ["with-job", "with-none"]
    assert select([tmp_path], area="queue") == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"area": "gong"}, "unknown area 'gong'"),
        ({"needs": ["jobs"]}, "unknown need 'jobs'; known needs: affinity"),
        ({"over": "carrier pigeon"}, "want sim or http"),
        ({"target": "next"}, "known: 1.37, 1.38"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(
    tmp_path: Path, arguments: dict[str, object], reason: str
) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(CaseError, match=reason):
        run([tmp_path], **arguments)  # type: ignore[arg-type]


def test_an_unknown_need_in_a_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "needs: [telepathy]\n")
    with pytest.raises(CaseError, match=f"{path}: unknown need 'telepathy'"):
        select([tmp_path])


def test_what_is_not_built_is_missing_for_the_cases_that_need_it(tmp_path: Path) -> None:
    built = load(write(tmp_path, GOOD + "needs: [job]\n", "built"))
    not_built = load(write(tmp_path, GOOD + "needs: [reservation, job]\n", "not-built"))
    assert [missing(case) for case in (built, not_built)] == [[], ["reservation"]]
