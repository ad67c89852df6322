"""The definition of a kind for tests, and the paths of it."""

from __future__ import annotations

from typing import Any

GROUP = "ml.example.com"
PATH = f"/apis/{GROUP}/v1/namespaces/default/trainingruns"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = f"trainingruns.{GROUP}"

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "minLength": 1, "maxLength": 20, "pattern": "^[a-z:0-9]*$"},
        "workers": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 64, "default": 2},
        "mode": {"type": "string", "enum": ["sync", "async"], "default": "sync"},
        "port": {"x-kubernetes-int-or-string": True},
        "rate": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": 0.5},
        "until": {"type": "string", "format": "date-time", "nullable": True},
        "checkpoint": {
            "type": "object",
            "default": {},
            "properties": {"every": {"type": "string", "default": "30m"}, "keep": {"type": "integer"}},
        },
        "env": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
            },
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "limits": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "integer"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
STATUS = {"type": "object", "properties": {"ready": {"type": "integer"}, "selector": {"type": "string"}}}


def version(name: str = "v1", *, storage: bool = True, spec: Any = None, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": SPEC if spec is None else spec, "status": STATUS}}
    scale = {"specReplicasPath": ".spec.workers", "statusReplicasPath": ".status.ready"}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale | {"labelSelectorPath": ".status.selector"}},
        **more,
    }


def definition(*versions: dict[str, Any], plural: str = "trainingruns", **more: Any) -> dict[str, Any]:
    names = {"plural": plural, "kind": "TrainingRun", "shortNames": ["tr"], "categories": ["all"]}
    names |= more.pop("names", {})
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": list(versions) or [version()], **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{spec['group']}"},
        "spec": spec,
    }


def run(name: str = "a", api_version: str = f"{GROUP}/v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": "TrainingRun",
        "metadata": {"name": name},
        "spec": {"image": "x", **spec},
    }
