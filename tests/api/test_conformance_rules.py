"""The `reject` steps of the conformance cases, run against the rules themselves: no server in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.api import catalog
from muster.api.gates import FeatureGates

CASES = Path(__file__).parents[2] / "conformance" / "cases"
FILES = [
    *sorted((CASES / "validation").glob("*.yaml")),
    CASES / "composite" / "tree-leaf-parent-needs-workload-reference.yaml",
    CASES / "composite" / "tree-min-group-count-is-immutable.yaml",
]
ADMISSION = {"podgroup-priority-from-class", "podgroup-priority-zero-without-default"}
"""What these expect is the work of admission."""


class Loader(yaml.SafeLoader):
    """Reads only true and false as booleans, as the format asks."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made


@dataclass
class Rules:
    """As much of a server as rules need: what was accepted, prepared."""

    gates: FeatureGates
    stored: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def create(self, manifest: dict[str, Any]) -> list[tuple[str, str]]:
        kind = catalog.by_kind(manifest["apiVersion"], manifest["kind"])
        if not kind.served(self.gates):
            return [("", "NotServed")]
        made = kind.prepare(manifest, None, self.gates)
        errors = kind.validate(made, None, self.gates)
        if not errors:
            self.stored[kind.kind, made["metadata"]["name"]] = made
        return [(error.field, error.type) for error in errors]

    def patch(
        self, kind: str, name: str, merge: dict[str, Any], subresource: str | None = None
    ) -> list[tuple[str, str]]:
        old = self.stored[kind, name]
        entry = catalog.named(kind)
        if subresource == "status":
            made = {**old, "status": merged(old.get("status"), merge["status"])}
            errors = entry.validate_status(made, old, self.gates)
        else:
            made = entry.prepare(merged(old, merge), old, self.gates)
            errors = entry.validate(made, old, self.gates)
        if not errors:
            self.stored[kind, name] = made
        return [(error.field, error.type) for error in errors]


def expanded(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The manifests of one entry of a create step; shorthands other than groups are none of these rules' business."""
    if "apiVersion" in entry:
        yield entry
    elif "composite" in entry:
        yield {
            "apiVersion": "scheduling.k8s.io/v1alpha3",
            "kind": "CompositePodGroup",
            "metadata": {"name": entry["composite"]},
            "spec": {
                "schedulingPolicy": {"gang": {"minGroupCount": entry["gang"]}},
                "workloadRef": {"workloadName": "w", "templateName": entry["composite"]},
            },
        }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_case_rejects_is_rejected_at_the_named_fields_and_what_it_creates_is_accepted(path: Path) -> None:
    case = yaml.load(path.read_text(encoding="utf-8"), Loader)
    if case["name"] in ADMISSION:
        return
    rules = Rules(FeatureGates.of(*case["gates"]))
    for step in case["steps"]:
        for entry in step.get("create", ()):
            for manifest in expanded(entry):
                assert rules.create(manifest) == [], manifest
        for entry in step.get("patch", ()):
            assert rules.patch(entry["kind"], entry["name"], entry["merge"]) == []
        if "reject" in step:
            rejected = step["reject"]
            if "object" in rejected:
                found = rules.create(rejected["object"])
            else:
                patch = rejected["patch"]
                found = rules.patch(patch["kind"], patch["name"], patch["merge"], patch.get("subresource"))
            wanted = [(error["field"], error["type"]) for error in rejected["errors"]]
            assert found, rejected
            if wanted:
                assert sorted(found) == sorted(wanted), rejected
        for match in step.get("expect", {}).get("match", ()):
            check(rules.stored[match["kind"], match["name"]], match)


def check(stored: dict[str, Any], match: dict[str, Any]) -> None:
    for missing in match.get("missing", ()):
        assert value_at(stored, missing) is None, missing
    wanted = match.get("subset", {})
    wanted.get("metadata", {}).pop("finalizers", None)  # admission sets them
    assert covers(stored, wanted), (stored, wanted)


def value_at(value: Any, path: str) -> Any:
    for step in re.findall(r"[^.\[\]]+", path):
        value = value[int(step)] if isinstance(value, list) else (value or {}).get(step)
    return value


def covers(value: Any, subset: Any) -> bool:
    if isinstance(subset, dict):
        return isinstance(value, dict) and all(key in value and covers(value[key], subset[key]) for key in subset)
    if isinstance(subset, list):
        return len(value) == len(subset) and all(map(covers, value, subset))
    return bool(value == subset)
