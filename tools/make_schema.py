"""Writes the reduced schema of the served kinds into the package: `src/muster/apiserver/schema.json.gz`.

Build time only. Needs the development package `kubernetes-validate`, whose v1.37 schemas carry what the API server
needs to know of every field: its name, its type, and how lists are merged. The rest (descriptions, required fields,
enumerations) is left out: what a value must be is for `muster.api.validation` to say, with the right error type.

The protobuf field numbers of the types come from `field_numbers.json`, see make_field_numbers.py.

    python tools/make_schema.py            # write the file
    python tools/make_schema.py --check    # exit 1 if the file is not what would be written
"""

from __future__ import annotations

import gzip
import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

RELEASE = "v1.37.0"
NUMBERS = Path(__file__).resolve().parent / "field_numbers.json"
"""Made by make_field_numbers.py."""
TARGET = Path(__file__).resolve().parent.parent / "src/muster/apiserver/schema.json.gz"

ADMISSION = "io.k8s.api.admissionregistration.v1"
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
KINDS = {
    "v1/Namespace": "io.k8s.api.core.v1.Namespace",
    "v1/Node": "io.k8s.api.core.v1.Node",
    "v1/Pod": "io.k8s.api.core.v1.Pod",
    "v1/Event": "io.k8s.api.core.v1.Event",
    "v1/PersistentVolume": "io.k8s.api.core.v1.PersistentVolume",
    "v1/PersistentVolumeClaim": "io.k8s.api.core.v1.PersistentVolumeClaim",
    "v1/Service": "io.k8s.api.core.v1.Service",
    "v1/ReplicationController": "io.k8s.api.core.v1.ReplicationController",
    "v1/LimitRange": "io.k8s.api.core.v1.LimitRange",
    "v1/ResourceQuota": "io.k8s.api.core.v1.ResourceQuota",
    "v1/ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "v1/Secret": "io.k8s.api.core.v1.Secret",
    "v1/ServiceAccount": "io.k8s.api.core.v1.ServiceAccount",
    "v1/Binding": "io.k8s.api.core.v1.Binding",
    "v1/DeleteOptions": "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "policy/v1/Eviction": "io.k8s.api.policy.v1.Eviction",
    "policy/v1/PodDisruptionBudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": f"{ADMISSION}.MutatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": f"{ADMISSION}.ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": f"{ADMISSION}.ValidatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": f"{ADMISSION}.ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1/CustomResourceDefinition": f"{EXTENSIONS}.CustomResourceDefinition",
    "apps/v1/ControllerRevision": "io.k8s.api.apps.v1.ControllerRevision",
    "apps/v1/DaemonSet": "io.k8s.api.apps.v1.DaemonSet",
    "apps/v1/Deployment": "io.k8s.api.apps.v1.Deployment",
    "apps/v1/ReplicaSet": "io.k8s.api.apps.v1.ReplicaSet",
    "apps/v1/StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
    "authentication.k8s.io/v1/SelfSubjectReview": "io.k8s.api.authentication.v1.SelfSubjectReview",
    "authorization.k8s.io/v1/LocalSubjectAccessReview": "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    "authorization.k8s.io/v1/SelfSubjectAccessReview": "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "authorization.k8s.io/v1/SelfSubjectRulesReview": "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    "authorization.k8s.io/v1/SubjectAccessReview": "io.k8s.api.authorization.v1.SubjectAccessReview",
    "autoscaling/v1/Scale": "io.k8s.api.autoscaling.v1.Scale",
    "batch/v1/CronJob": "io.k8s.api.batch.v1.CronJob",
    "batch/v1/Job": "io.k8s.api.batch.v1.Job",
    "coordination.k8s.io/v1/Lease": "io.k8s.api.coordination.v1.Lease",
    "events.k8s.io/v1/Event": "io.k8s.api.events.v1.Event",
    "node.k8s.io/v1/RuntimeClass": "io.k8s.api.node.v1.RuntimeClass",
    "resource.k8s.io/v1/DeviceTaintRule": "io.k8s.api.resource.v1.DeviceTaintRule",
    "resource.k8s.io/v1/DeviceClass": "io.k8s.api.resource.v1.DeviceClass",
    "resource.k8s.io/v1/ResourceClaim": "io.k8s.api.resource.v1.ResourceClaim",
    "resource.k8s.io/v1/ResourceClaimTemplate": "io.k8s.api.resource.v1.ResourceClaimTemplate",
    "resource.k8s.io/v1/ResourceSlice": "io.k8s.api.resource.v1.ResourceSlice",
    "scheduling.k8s.io/v1/PriorityClass": "io.k8s.api.scheduling.v1.PriorityClass",
    "scheduling.k8s.io/v1alpha3/CompositePodGroup": "io.k8s.api.scheduling.v1alpha3.CompositePodGroup",
    "scheduling.k8s.io/v1beta1/PodGroup": "io.k8s.api.scheduling.v1beta1.PodGroup",
    "scheduling.k8s.io/v1beta1/Workload": "io.k8s.api.scheduling.v1beta1.Workload",
    "storage.k8s.io/v1/StorageClass": "io.k8s.api.storage.v1.StorageClass",
    "storage.k8s.io/v1/CSINode": "io.k8s.api.storage.v1.CSINode",
    "storage.k8s.io/v1/CSIDriver": "io.k8s.api.storage.v1.CSIDriver",
    "storage.k8s.io/v1/CSIStorageCapacity": "io.k8s.api.storage.v1.CSIStorageCapacity",
    "storage.k8s.io/v1/VolumeAttachment": "io.k8s.api.storage.v1.VolumeAttachment",
}
"""apiVersion/kind -> the name of its definition upstream."""

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
OPEN = ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "io.k8s.apimachinery.pkg.runtime.RawExtension")
"""Objects that may hold anything; every other object has the properties that are named, or none."""
ANY = (f"{EXTENSIONS}.JSON", f"{EXTENSIONS}.JSONSchemaPropsOrBool", f"{EXTENSIONS}.JSONSchemaPropsOrStringArray")
"""Values of any type."""
PRESERVES = "x-kubernetes-preserve-unknown-fields"
KEPT = (
    "format",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)


def short(name: str) -> str:
    for prefix in ("io.k8s.api.", "io.k8s.apimachinery.pkg.", "io.k8s.apiextensions-apiserver.pkg.apis."):
        name = name.removeprefix(prefix)
    return name


class Reducer:
    """Copies the definitions that the served kinds reach, reduced."""

    def __init__(self, upstream: dict[str, Any]) -> None:
        self._upstream = upstream
        self.types: dict[str, Any] = {}

    def add(self, name: str) -> None:
        if short(name) in self.types:
            return
        self.types[short(name)] = {}
        self.types[short(name)] = {"type": "object"} if name in OPEN else self.reduced(self._definition(name))

    def _definition(self, name: str) -> dict[str, Any]:
        if name == QUANTITY:
            return {"type": "string", "format": "quantity"}
        if name == MICRO_TIME:
            return {"type": "string", "format": "micro-time"}
        if name in ANY:
            return {PRESERVES: True}
        if name == INT_OR_STRING:
            return {"type": "int-or-string", "format": "int32"}
        found: dict[str, Any] = self._upstream[name]
        return found

    def reduced(self, node: dict[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {key: node[key] for key in KEPT if key in node}
        if "$ref" in node:
            name = node["$ref"].removeprefix("#/$defs/")
            name = name.replace("JSONSchemaPropsOrArray", "JSONSchemaProps")  # no structural schema has an array there
            self.add(name)
            return out | {"$ref": f"#/$defs/{short(name)}"}
        if PRESERVES in node:
            return node
        out["type"] = node["type"] if isinstance(node["type"], str) else node["type"][0]
        if out["type"] == "int-or-string":
            out["type"] = ["integer", "string"]
        if "items" in node:
            out["items"] = self.reduced(node["items"])
        if "additionalProperties" in node:
            out["additionalProperties"] = self.reduced(node["additionalProperties"])
        elif out["type"] == "object":
            properties = sorted(node.get("properties", {}).items())
            out["properties"] = {key: self.reduced(value) for key, value in properties}
            out["additionalProperties"] = False
        return out


def numbered(wanted: list[str]) -> dict[str, Any]:
    """The protobuf fields of the types that these reach."""
    known = json.loads(NUMBERS.read_text())
    found: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name in known and name not in found:
            found[name] = known[name]
            wanted += [code.rpartition("@")[2] for code in known[name].values() if "@" in code]
    return dict(sorted(found.items()))


def make() -> bytes:
    source = files("kubernetes_validate") / "kubernetes-json-schema" / f"{RELEASE}-local" / "_definitions.json"
    reducer = Reducer(json.loads(source.read_text())["$defs"])
    for name in KINDS.values():
        reducer.add(name)
    document = {
        "kubernetes": RELEASE,
        "kinds": {kind: short(name) for kind, name in sorted(KINDS.items())},
        "$defs": dict(sorted(reducer.types.items())),
        "protobuf": numbered([short(name).removeprefix("apis.") for name in KINDS.values()]),
    }
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), 9, mtime=0)


def main() -> int:
    made = make()
    if "--check" in sys.argv[1:]:
        same = TARGET.exists() and gzip.decompress(TARGET.read_bytes()) == gzip.decompress(made)
        print(f"{TARGET.name} is {'up to date' if same else 'out of date: run python tools/make_schema.py'}")
        return 0 if same else 1
    TARGET.write_bytes(made)
    print(f"{TARGET.name}: {len(made)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
