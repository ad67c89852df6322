"""What the documentation says is true: links lead somewhere, commands run, examples are accepted."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.cli.app import run
from served import Served, serving

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands(page: Path) -> list[list[str]]:
    """The arguments of every line `$ muster ...` of a page, in order."""
    return [shlex.split(line)[2:] for line in page.read_text().splitlines() if line.startswith("$ muster ")]


TALKING = [page for page in PAGES if commands(page)]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.chdir(ROOT)
    with serving() as server:
        monkeypatch.setenv("MUSTER_SERVER", server.url)
        yield server


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{name(page)} links to {target}"


@pytest.mark.parametrize("page", TALKING, ids=name)
def test_every_command_of_a_page_runs(page: Path, served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in commands(page):
        code = run(arguments)
        assert code == 0, f"muster {shlex.join(arguments)}: {capsys.readouterr().err}"
        served.settle()


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text() + (ROOT / "docs" / "adr" / "README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "README.md":
            assert page.name in index, f"{name(page)} is in no index"


def test_every_example_manifest_is_mentioned_and_accepted(served: Served) -> None:
    text = "".join(page.read_text() for page in PAGES)
    for example in sorted((ROOT / "examples").iterdir()):
        assert f"examples/{example.name}" in text, f"{example.name} is mentioned nowhere"
        if example.suffix == ".yaml" and example.name != "profile.yaml":
            assert run(["apply", "-f", str(example)]) == 0


SNIPPETS = {
    "docs/how-to/own-profile.md": "check_plugin",
    "docs/tutorials/your-controller.md": "whole",
    "src/muster/workloadbuilder/README.md": "group",
}
"""Pages whose Python runs from top to bottom, and a name that is there in the end."""


@pytest.mark.parametrize("page", SNIPPETS)
def test_the_python_of_a_page_runs(page: str) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
    namespace: dict[str, object] = {}
    exec(compile(code, page, "exec"), namespace)
    assert SNIPPETS[page] in namespace


def test_the_python_client_example_binds_its_gang_again_and_again(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "client-gang"},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(group)))
    namespace: dict[str, object] = {"__name__": "example"}
    exec(compile((ROOT / "examples" / "client.py").read_text(), "client.py", "exec"), namespace)
    for _ in range(2):
        namespace["main"](served.url)  # type: ignore[operator]
        assert capsys.readouterr().out.count(" -> ") == 3
        served.settle()
    assert run(["apply", "-f", "-"]) == 0
    with pytest.raises(SystemExit, match="muster delete pg client-gang"):
        namespace["main"](served.url)  # type: ignore[operator]
