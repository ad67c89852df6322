"""CustomResourceDefinitions (apiextensions.k8s.io/v1), as far as Muster reads them typed; the rest is read raw."""

from __future__ import annotations

from muster.api.meta import ObjectMeta, Part


class CustomResourceDefinition(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class CustomObject(Part, frozen=True):
    """An object of a user's own kind: of what it says only the metadata is the same everywhere."""

    metadata: ObjectMeta = ObjectMeta()
