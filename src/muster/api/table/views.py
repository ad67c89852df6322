"""What is served and not stored by itself: events by other names, and questions about access."""

from __future__ import annotations

from muster.api import events, reviews
from muster.api.events import EventKind
from muster.api.kind import Kind
from muster.api.validation import events as event_rules
from muster.api.validation import reviews as rules

EVENTS_EVENT = EventKind(
    "Event", "events.k8s.io", "v1", "events", "event", events.Event, ("ev",),
    selectable=(
        "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
        "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type",
    ),
    created_by_update=True, validate=event_rules.events_event,
)  # fmt: skip
SELF_SUBJECT_REVIEW = Kind(
    "SelfSubjectReview", "authentication.k8s.io", "v1", "selfsubjectreviews", "selfsubjectreview",
    reviews.SelfSubjectReview, (), False, asked=True,
)  # fmt: skip
SELF_SUBJECT_ACCESS_REVIEW = Kind(
    "SelfSubjectAccessReview", "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "selfsubjectaccessreview",
    reviews.SelfSubjectAccessReview, (), False, asked=True, validate=rules.own_access,
)  # fmt: skip
SELF_SUBJECT_RULES_REVIEW = Kind(
    "SelfSubjectRulesReview", "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "selfsubjectrulesreview",
    reviews.SelfSubjectRulesReview, (), False, asked=True, validate=rules.own_rules,
)  # fmt: skip
SUBJECT_ACCESS_REVIEW = Kind(
    "SubjectAccessReview", "authorization.k8s.io", "v1", "subjectaccessreviews", "subjectaccessreview",
    reviews.SubjectAccessReview, (), False, asked=True, validate=rules.access,
)  # fmt: skip
LOCAL_SUBJECT_ACCESS_REVIEW = Kind(
    "LocalSubjectAccessReview", "authorization.k8s.io", "v1", "localsubjectaccessreviews", "localsubjectaccessreview",
    reviews.SubjectAccessReview, (), True, asked=True, validate=rules.local_access,
)  # fmt: skip

VIEWS: tuple[Kind, ...] = (
    EVENTS_EVENT,
    SELF_SUBJECT_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
)
