"""Between the versions that a server offers and those that Muster works with: paths and objects, both ways.

Inside, everything is in the versions of `api.catalog` (scheduling.k8s.io/v1beta1 and v1alpha3, resource.k8s.io/v1). The
other versions that are understood differ in names, not in meaning:

* scheduling.k8s.io/v1alpha3 of 1.37: the same fields as v1beta1.
* scheduling.k8s.io/v1alpha2 of 1.36: `podGroupTemplateRef.workload` instead of `workloadRef`, and a disruptionMode
  that is a word, `Pod` or `PodGroup`. There are no hierarchies, and no preemptionPolicy of groups.
* resource.k8s.io/v1beta2: the same fields as v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muster.api import catalog
from muster.api.calls import Request

Raw = Mapping[str, Any]
ALPHA2 = "v1alpha2"
UNDERSTOOD: Mapping[str, tuple[str, ...]] = {
    "podgroups": ("v1beta1", "v1alpha3", ALPHA2),
    "workloads": ("v1beta1", "v1alpha3", ALPHA2),
    "compositepodgroups": ("v1alpha3",),
    "resourceclaims": ("v1", "v1beta2"),
    "resourceclaimtemplates": ("v1", "v1beta2"),
    "resourceslices": ("v1", "v1beta2"),
    "deviceclasses": ("v1", "v1beta2"),
    "devicetaintrules": ("v1", "v1beta2", "v1alpha3"),
}
"""By resource the versions that can be worked with, the best first; of all others that of the catalog."""
_MODES: Mapping[str, Raw] = {"Pod": {"single": {}}, "PodGroup": {"all": {}}}
_WORDS = {"single": "Pod", "all": "PodGroup"}


def understood(resource: str) -> tuple[str, ...]:
    return UNDERSTOOD.get(resource) or (catalog.by_resource(resource).version,)


class Border:
    """Converts for one server. `versions`: by resource the version that it is asked in."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._versions = {
            resource: version
            for resource, version in versions.items()
            if catalog.by_resource(resource).version != version
        }

    def path(self, resource: str) -> str:
        """Of the whole collection, in all namespaces."""
        kind = catalog.by_resource(resource)
        version = self._versions.get(resource, kind.version)
        return replace(kind, version=version).path(None)

    def outgoing(self, request: Request) -> Request:
        """The same call in the server's version."""
        if not self._versions or not request.path.startswith("/apis/"):
            return request
        parts = request.path.split("/")  # "", apis, GROUP, VERSION, [namespaces, NAME,] RESOURCE, ...
        at = 6 if parts[4] == "namespaces" and len(parts) > 6 else 4
        version = self._versions.get(parts[at]) if len(parts) > at else None
        if version is None or catalog.by_resource(parts[at]).group != parts[2]:
            return request
        parts[3] = version
        body = request.body
        if isinstance(body, Mapping) and "apiVersion" in body and body.get("kind") != "DeleteOptions":
            body = _older(body, f"{parts[2]}/{version}") if version == ALPHA2 else body
            body = {**body, "apiVersion": f"{parts[2]}/{version}"}
        return replace(request, path="/".join(parts), body=body)

    def incoming(self, resource: str, raw: dict[str, Any]) -> Raw:
        """The object as the machines see it: in the catalog's version, with its kind, without managed fields.

        `raw` is given away.
        """
        kind = catalog.by_resource(resource)
        meta = raw.get("metadata")
        if isinstance(meta, dict):
            meta.pop("managedFields", None)
        raw["kind"], raw["apiVersion"] = kind.kind, kind.api_version
        return _newer(raw) if self._versions.get(resource) == ALPHA2 else raw


def _newer(raw: Raw) -> Raw:
    """A PodGroup or Workload of v1alpha2 in the words of v1beta1."""
    spec = raw.get("spec")
    if not isinstance(spec, Mapping):
        return raw
    made = _with_mode(spec)
    templates = made.get("podGroupTemplates")
    if isinstance(templates, list):
        made["podGroupTemplates"] = [_with_mode(template) for template in templates]
    reference = made.pop("podGroupTemplateRef", None)
    workload = reference.get("workload") if isinstance(reference, Mapping) else None
    if isinstance(workload, Mapping):
        made["workloadRef"] = {
            "workloadName": workload.get("workloadName", ""),
            "templateName": workload.get("podGroupTemplateName", ""),
        }
    return {**raw, "spec": made}


def _with_mode(spec: Raw) -> dict[str, Any]:
    made = dict(spec)
    if isinstance(made.get("disruptionMode"), str):
        made["disruptionMode"] = _MODES.get(made["disruptionMode"], _MODES["Pod"])
    return made


def _older(raw: Raw, api_version: str) -> Raw:
    """A whole PodGroup or Workload of v1beta1 in the words of v1alpha2; what these have no word for is left out."""
    spec = raw.get("spec")
    if not isinstance(spec, Mapping):
        return raw
    made = _with_word(spec)
    templates = made.get("podGroupTemplates")
    if isinstance(templates, list):
        made["podGroupTemplates"] = [_with_word(template) for template in templates]
    reference = made.pop("workloadRef", None)
    if isinstance(reference, Mapping):
        workload = {
            "workloadName": reference.get("workloadName", ""),
            "podGroupTemplateName": reference.get("templateName", ""),
        }
        made["podGroupTemplateRef"] = {"workload": workload}
    for name in ("parentCompositePodGroupName", "compositePodGroupTemplates"):
        made.pop(name, None)
    return {**raw, "apiVersion": api_version, "spec": made}


def _with_word(spec: Raw) -> dict[str, Any]:
    made = {name: value for name, value in spec.items() if name != "preemptionPolicy"}
    mode = made.get("disruptionMode")
    if isinstance(mode, Mapping):
        made["disruptionMode"] = next((word for name, word in _WORDS.items() if name in mode), "Pod")
    return made
