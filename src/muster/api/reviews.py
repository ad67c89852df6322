"""Typed views of questions that are answered and not stored: what may I do, and who am I."""

from __future__ import annotations

from muster.api.meta import ObjectMeta, Part


class ResourceAttributes(Part, frozen=True):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class NonResourceAttributes(Part, frozen=True):
    path: str = ""
    verb: str = ""


class SelfSubjectAccessReviewSpec(Part, frozen=True):
    """Exactly one of both."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SelfSubjectAccessReview(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelfSubjectAccessReviewSpec = SelfSubjectAccessReviewSpec()


class SubjectAccessReviewSpec(Part, frozen=True):
    """Exactly one of both attributes, and about whom."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: tuple[str, ...] = ()


class SubjectAccessReview(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()


class SelfSubjectRulesReviewSpec(Part, frozen=True):
    namespace: str = ""


class SelfSubjectRulesReview(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelfSubjectRulesReviewSpec = SelfSubjectRulesReviewSpec()


class SelfSubjectReview(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
