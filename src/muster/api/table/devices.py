"""Devices, and claims to them: resource.k8s.io."""

from __future__ import annotations

from muster.api import resource
from muster.api.defaults import devices as defaults
from muster.api.kind import Kind
from muster.api.validation import claims, slices

RESOURCE_CLAIM = Kind(
    "ResourceClaim", "resource.k8s.io", "v1", "resourceclaims", "resourceclaim", resource.ResourceClaim, (), True,
    ("status",), status_keeps_metadata=True,
    defaults=defaults.resource_claim, validate=claims.resource_claim, validate_status=claims.resource_claim_status,
)  # fmt: skip
RESOURCE_CLAIM_TEMPLATE = Kind(
    "ResourceClaimTemplate", "resource.k8s.io", "v1", "resourceclaimtemplates", "resourceclaimtemplate",
    resource.ResourceClaimTemplate,
    defaults=defaults.resource_claim_template, validate=claims.resource_claim_template,
)  # fmt: skip
DEVICE_CLASS = Kind(
    "DeviceClass", "resource.k8s.io", "v1", "deviceclasses", "deviceclass", resource.DeviceClass, (), False,
    validate=claims.device_class,
)  # fmt: skip
RESOURCE_SLICE = Kind(
    "ResourceSlice", "resource.k8s.io", "v1", "resourceslices", "resourceslice", resource.ResourceSlice, (), False,
    selectable=("spec.nodeName", "spec.driver", "spec.pool.name"),
    defaults=defaults.resource_slice, validate=slices.resource_slice,
)  # fmt: skip
DEVICE_TAINT_RULE = Kind(
    "DeviceTaintRule", "resource.k8s.io", "v1", "devicetaintrules", "devicetaintrule", resource.DeviceTaintRule, (),
    False, ("status",), gate="DRADeviceTaintRules",
    validate=slices.device_taint_rule, validate_status=slices.device_taint_rule_status,
)  # fmt: skip
