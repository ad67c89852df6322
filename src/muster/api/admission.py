"""Typed views of the kinds of admissionregistration.k8s.io/v1."""

from __future__ import annotations

from muster.api.meta import LabelSelector, ObjectMeta, Part

OBJECT = frozenset(("object", "oldObject", "request", "authorizer"))
"""The variables of a match condition of a webhook."""
POLICY = OBJECT | {"namespaceObject", "variables"}
"""The variables of an expression of a policy; with a paramKind there is `params` too."""


class Rule(Part, frozen=True):
    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str | None = None


class NamedRule(Rule, frozen=True):
    resource_names: tuple[str, ...] = ()


class MatchResources(Part, frozen=True):
    match_policy: str = ""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: tuple[NamedRule, ...] = ()
    exclude_resource_rules: tuple[NamedRule, ...] = ()


class Expression(Part, frozen=True):
    """A match condition or a variable."""

    name: str = ""
    expression: str = ""


class Validation(Part, frozen=True):
    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None


class AuditAnnotation(Part, frozen=True):
    key: str = ""
    value_expression: str = ""


class ParamKind(Part, frozen=True):
    api_version: str = ""
    kind: str = ""


class ParamRef(Part, frozen=True):
    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str = ""


class PolicySpec(Part, frozen=True):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    validations: tuple[Validation, ...] = ()
    failure_policy: str = ""
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    match_conditions: tuple[Expression, ...] = ()
    variables: tuple[Expression, ...] = ()


class BindingSpec(Part, frozen=True):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: tuple[str, ...] = ()


class ServiceReference(Part, frozen=True):
    name: str = ""
    namespace: str = ""
    path: str = ""
    port: int = 0


class ClientConfig(Part, frozen=True):
    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str = ""


class ValidatingWebhook(Part, frozen=True):
    name: str = ""
    client_config: ClientConfig = ClientConfig()
    rules: tuple[Rule, ...] = ()
    failure_policy: str = ""
    match_policy: str = ""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = None
    timeout_seconds: int = 0
    admission_review_versions: tuple[str, ...] = ()
    match_conditions: tuple[Expression, ...] = ()


class MutatingWebhook(ValidatingWebhook, frozen=True):
    reinvocation_policy: str = ""


class ValidatingAdmissionPolicy(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PolicySpec = PolicySpec()


class ValidatingAdmissionPolicyBinding(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: BindingSpec = BindingSpec()


class ValidatingWebhookConfiguration(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[ValidatingWebhook, ...] = ()


class MutatingWebhookConfiguration(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[MutatingWebhook, ...] = ()
