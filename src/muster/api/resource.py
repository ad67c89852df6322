"""Typed views of resource.k8s.io/v1: as much as validation needs; devices are stored, not yet allocated."""

from __future__ import annotations

from muster.api.meta import ObjectMeta, Part


class ExactDeviceRequest(Part, frozen=True):
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int = 0


class DeviceSubRequest(Part, frozen=True):
    name: str = ""
    device_class_name: str = ""


class DeviceRequest(Part, frozen=True):
    """Exactly one of `exactly` and `first_available`."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceClaim(Part, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()


class ResourceClaimSpec(Part, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class ResourceClaimConsumer(Part, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Part, frozen=True):
    allocation: dict[str, object] | None = None
    reserved_for: tuple[ResourceClaimConsumer, ...] = ()


class ResourceClaim(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Part, frozen=True):
    extended_resource_name: str | None = None


class DeviceClass(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()
