"""What extends the API: apiextensions.k8s.io and admissionregistration.k8s.io."""

from __future__ import annotations

from muster.api import admission, definitions
from muster.api.defaults import admission as admission_defaults
from muster.api.defaults import definitions as definition_defaults
from muster.api.kind import Kind
from muster.api.validation import definition, policies, webhooks

CUSTOM_RESOURCE_DEFINITION = Kind(
    "CustomResourceDefinition", "apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinition",
    definitions.CustomResourceDefinition, ("crd", "crds"), False, ("status",), categories=("api-extensions",),
    needs_revision=True,
    defaults=definition_defaults.definition, validate=definition.definition,
    validate_status=definition.definition_status,
)  # fmt: skip
VALIDATING_ADMISSION_POLICY = Kind(
    "ValidatingAdmissionPolicy", "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
    "validatingadmissionpolicy", admission.ValidatingAdmissionPolicy, (), False, ("status",),
    categories=("api-extensions",), needs_revision=True, status_keeps_metadata=True,
    defaults=admission_defaults.policy, validate=policies.policy,
)  # fmt: skip
VALIDATING_ADMISSION_POLICY_BINDING = Kind(
    "ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
    "validatingadmissionpolicybinding", admission.ValidatingAdmissionPolicyBinding, (), False,
    categories=("api-extensions",), needs_revision=True, defaults=admission_defaults.binding, validate=policies.binding,
)  # fmt: skip
VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    "ValidatingWebhookConfiguration", "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
    "validatingwebhookconfiguration", admission.ValidatingWebhookConfiguration, (), False,
    categories=("api-extensions",), needs_revision=True,
    defaults=admission_defaults.validating_webhooks, validate=webhooks.validating,
)  # fmt: skip
MUTATING_WEBHOOK_CONFIGURATION = Kind(
    "MutatingWebhookConfiguration", "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
    "mutatingwebhookconfiguration", admission.MutatingWebhookConfiguration, (), False,
    categories=("api-extensions",), needs_revision=True,
    defaults=admission_defaults.mutating_webhooks, validate=webhooks.mutating,
)  # fmt: skip
