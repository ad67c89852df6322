"""Cases of area builder: a controller's tree, or a Job, turned into a Workload and groups."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.conformance.cases import Case, CaseError
from muster.conformance.drivers import gates_of
from muster.conformance.expect import subset_differences
from muster.conformance.jobs import Made, run_job
from muster.workloadbuilder.build import Builder
from muster.workloadbuilder.items import (
    BuildOptions,
    SchedulingConfig,
    UserBlock,
    WorkloadInput,
    WorkloadItem,
    default_min_count,
)
from muster.workloadbuilder.materialize import BuildError
from muster.workloadbuilder.names import pod_group_name, workload_name

Json = Mapping[str, Any]
_CONFIG = {
    "policy": "policy",
    "constraints": "constraints",
    "disruptionMode": "disruption_mode",
    "resourceClaims": "resource_claims",
    "priorityClassName": "priority_class_name",
}
_ABSENT: Any = object()


@dataclass(slots=True)
class Outcome:
    """What came of a case's input, in the terms of its `output` and `errors`."""

    made: Made = field(default_factory=Made)
    names: list[str] = field(default_factory=list)
    errors: list[Json] = field(default_factory=list)
    input_unchanged: bool = True
    callbacks_run: int = 0
    build_refused: bool = False
    validate_refused: bool = False


def build_differences(case: Case) -> list[str]:
    """Everything that is not as the case says.

    Raises:
        CaseError: the input has a shape that the format does not know.
    """
    try:
        outcome = _outcome(case)
    except (KeyError, TypeError, AttributeError) as error:
        raise CaseError(f"input has the wrong shape: {error!r}") from error
    return [*_output_differences(outcome, case.output or {}), *_error_differences(outcome.errors, case.errors)]


def _outcome(case: Case) -> Outcome:
    given = copy.deepcopy(dict(case.input))
    outcome = Outcome()
    if "names" in given:
        outcome.names = [_name(item) for item in given["names"]]
    elif "job" in given:
        outcome.made = run_job(
            given["job"],
            gates=gates_of(case),
            previous=given.get("previousJob"),
            existing=[*given.get("existing", ()), *filter(None, [given.get("existingWorkload")])],
        )
    else:
        _build(given, outcome)
    outcome.input_unchanged = given == case.input
    return outcome


def _name(item: Json) -> str:
    if "workload" in item:
        return workload_name(item["workload"]["owner"], item["workload"]["uid"])
    return pod_group_name(item["podGroup"]["workload"], item["podGroup"]["template"])


def _build(given: Json, outcome: Outcome) -> None:
    options = _options(given["options"])
    tree = _item(given.get("tree"), outcome)
    before = copy.deepcopy(tree)
    existing = given.get("existingWorkload")
    builder = Builder.from_existing_workload(existing, options) if existing else Builder(tree, options)
    if existing:
        outcome.build_refused = _refuses(builder)
        outcome.validate_refused = bool(builder.validate("spec"))
    elif "validate" in given:
        old = given["validate"].get("old")
        errors = builder.validate(given["validate"]["path"], old=_item(old, Outcome()) if old else None)
        outcome.errors += [{"field": e.field, "type": e.type, "message": e.message} for e in errors]
    else:
        _try(outcome, lambda: outcome.made.workloads.append(builder.build_workload()))
    if not outcome.errors:
        for item in given.get("materialize", ()):
            _try(outcome, lambda item=item: _materialize(builder, item, outcome))  # type: ignore[misc]
    outcome.input_unchanged = tree == before


def _try(outcome: Outcome, step: Callable[[], None]) -> None:
    try:
        step()
    except BuildError as error:
        outcome.errors.append({"field": "", "type": "Build", "message": str(error)})


def _refuses(builder: Builder) -> bool:
    try:
        builder.build_workload()
    except BuildError:
        return True
    return False


def _materialize(builder: Builder, item: Json, outcome: Outcome) -> None:
    if "podGroup" in item:
        outcome.made.pod_groups.append(builder.new_pod_group(item["podGroup"], item["template"]))
    else:
        composite = builder.new_composite_pod_group(item["compositePodGroup"], item["template"])
        outcome.made.composite_pod_groups.append(composite)


def _options(raw: Json) -> BuildOptions:
    return BuildOptions(
        name=raw["name"],
        namespace=raw["namespace"],
        owner=raw.get("owner"),
        allowed_policies=raw.get("allowedPolicies"),
        allowed_disruption_modes=raw.get("allowedDisruptionModes"),
        disable_declarative_validation=raw.get("disableDeclarativeValidation", False),
    )


def _item(raw: Json | None, outcome: Outcome) -> WorkloadItem | None:
    if raw is None:
        return None
    return WorkloadItem(
        raw["name"],
        SchedulingConfig(**{_CONFIG[key]: value for key, value in raw.get("default", {}).items()}),
        WorkloadInput(**{_CONFIG[key]: _user(value) for key, value in raw.get("user", {}).items()}),
        tuple(_callback(item["defaultMinCount"], outcome) for item in raw.get("callbacks", ())),
        tuple(_item(child, outcome) for child in raw.get("children", ())),
    )


def _user(raw: Json) -> UserBlock:
    return UserBlock(tuple(raw.get("path", ())), raw.get("leaf"), raw.get("composite"))


def _callback(count: int, outcome: Outcome) -> Callable[[SchedulingConfig], SchedulingConfig]:
    fill = default_min_count(count)

    def counted(config: SchedulingConfig) -> SchedulingConfig:
        outcome.callbacks_run += 1
        return fill(config)

    return counted


def _output_differences(outcome: Outcome, output: Json) -> Iterator[str]:
    made = outcome.made
    if output.get("workload", _ABSENT) is None and made.workloads:
        yield f"a Workload {made.workloads[0]['metadata']['name']} was made"
    elif output.get("workload") is not None:
        yield from _lists_differ("workload", made.workloads, [output["workload"]])
    if "podGroups" in output:
        yield from _lists_differ("podGroups", made.pod_groups, output["podGroups"])
    if "compositePodGroups" in output:
        yield from _lists_differ("compositePodGroups", made.composite_pod_groups, output["compositePodGroups"])
    for key, found in (
        ("names", outcome.names),
        ("podSchedulingGroup", made.pod_scheduling_group),
        ("inputUnchanged", outcome.input_unchanged),
        ("callbacksRun", outcome.callbacks_run),
        ("buildRefused", outcome.build_refused),
        ("validateRefused", outcome.validate_refused),
    ):
        if key in output and output[key] != found:
            yield f"{key} is {found!r}, not {output[key]!r}"


def _lists_differ(what: str, found: list[Json], wanted: list[Json]) -> Iterator[str]:
    if len(found) != len(wanted):
        yield f"{what}: {len(found)} were made, not {len(wanted)}"
        return
    for have, want in zip(found, wanted, strict=True):
        yield from (f"{what}: {difference}" for difference in subset_differences(have, want))


def _error_differences(found: list[Json], wanted: Any) -> Iterator[str]:
    rest = list(found)
    for want in wanted or ():
        for have in rest:
            if all(have[k] == want[k] for k in ("field", "type")) and want.get("message", "") in have["message"]:
                rest.remove(have)
                break
        else:
            yield f"no error {want['type']} at {want['field'] or 'no field'}"
    yield from (f"error {error['type']} at {error['field'] or 'no field'}: {error['message']}" for error in rest)
