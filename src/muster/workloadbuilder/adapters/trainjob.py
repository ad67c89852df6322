"""A Kubeflow TrainJob: the JobSet that its runtime makes of it, with its number of nodes.

Facts: trainer.kubeflow.org/v1alpha1. The runtime is an object of its own; the JobSet has the TrainJob's name, and
its replicated job `node` has `spec.trainer.numNodes` pods, else those of the runtime's `mlPolicy`.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.workloadbuilder.adapters import jobset, roles
from muster.workloadbuilder.adapters.fields import Field
from muster.workloadbuilder.adapters.view import View
from muster.workloadbuilder.items import Block

NODE, LAUNCHER = "node", "launcher"
ENDED = ("Complete", "Failed")


def view(job: Field, related: Sequence[Block] = ()) -> View:
    spec = job / "spec"
    kind = (spec / "runtimeRef" / "kind").text("ClusterTrainingRuntime")
    name = (spec / "runtimeRef" / "name").name()
    ended = [each for each in (job / "status" / "conditions").items()
             if (each / "type").text() in ENDED and (each / "status").text() == "True"]  # fmt: skip
    if ended:
        return View(None, nothing=f"it has ended ({(ended[0] / 'type').text()})")
    if (spec / "suspend").truth():
        return View(None, nothing="it is suspended; groups are made when it is resumed")
    runtime = next((each for each in related if _is(each, kind, name)), None)
    if runtime is None:
        (spec / "runtimeRef" / "name").wrong(f"{kind} {name} says how the pods look: give it as well, in the same file")
        return View(None, nothing="its runtime is not known")
    found = Field(runtime, None, [])
    policy = found / "spec" / "mlPolicy"
    nodes = (spec / "trainer" / "numNodes").number((policy / "numNodes").number(1), 1)
    if (policy / "mpi" / "runLauncherAsNode").truth():
        nodes -= 1
    template = found / "spec" / "template"
    made = {"metadata": {**(template / "metadata").mapping(), **_said(job)}, "spec": (template / "spec").value or {}}
    inner = Field(made, None, found.errors)
    result = jobset.view_as(inner, (job / "metadata" / "name").text(), {NODE: nodes})
    if found.errors:
        first = found.errors[0]
        (spec / "runtimeRef" / "name").wrong(f"{kind} {name} is wrong: spec.template.{first}")
    return View(result.item, result.groups, [*result.notes, f"roles as in {kind} {name}"], result.nothing)


def _is(manifest: Block, kind: str, name: str) -> bool:
    meta = manifest.get("metadata")
    return manifest.get("kind") == kind and isinstance(meta, dict) and meta.get("name") == name


def _said(job: Field) -> dict[str, object]:
    """The TrainJob's own words on scheduling count for its JobSet."""
    given = (job / "metadata" / "annotations").mapping()
    return {"annotations": dict(given)} if any(key in given for key in (*roles.SCHEDULING, jobset.EXCLUSIVE)) else {}
