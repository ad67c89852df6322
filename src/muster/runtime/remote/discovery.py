"""What an API server offers of what a scheduler needs, and what to switch on where it does not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.runtime.remote.border import understood

OLDEST = 34
"""The minor version of Kubernetes from which on this is meant to work."""
GROUPS, COMPOSITES = "podgroups", "compositepodgroups"
_OPTIONAL = frozenset({"devicetaintrules"})
"""What is off in most clusters, and not missed there."""
_ESSENTIAL = frozenset({"nodes", "pods", "namespaces"})


@dataclass(frozen=True)
class Offer:
    """What can be worked with."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """By resource the version to ask in, for all that are offered in one that is understood."""
    minor: int | None = None
    """The server's minor version of Kubernetes 1; None: it does not say."""
    version: str = ""

    def has(self, resource: str) -> bool:
        return resource in self.versions

    def remarks(self, resources: Collection[str]) -> list[str]:
        """One sentence for each thing that is missing of these resources, with the flag that brings it."""
        said = []
        if self.minor is not None and self.minor < OLDEST:
            said.append(f"the server is {self.version}; versions before 1.{OLDEST} were never tried")
        missing = [resource for resource in resources if not self.has(resource)]
        if GROUPS in missing:
            said.append(_groups_missing(self.minor))
        if COMPOSITES in missing and GROUPS not in missing:
            said.append(_composites_missing(self.minor))
        others = [resource for resource in missing if resource not in (GROUPS, COMPOSITES, *_OPTIONAL)]
        for group in dict.fromkeys(catalog.by_resource(resource).group for resource in others):
            said.append(_others_missing(group, [one for one in others if catalog.by_resource(one).group == group]))
        return said


def _groups_missing(minor: int | None) -> str:
    version = "v1alpha2" if minor == 36 else "v1beta1"
    told = (
        "" if minor is None or minor >= 36 else f" (this server is 1.{minor}; the first release that has them is 1.36)"
    )
    return (
        f"no PodGroups are served{told}: pods that name one wait, and all others are scheduled. To have them, "
        f"start kube-apiserver with --feature-gates=GenericWorkload=true and "
        f"--runtime-config=scheduling.k8s.io/{version}=true"
    )


def _composites_missing(minor: int | None) -> str:
    if minor is not None and minor < 37:
        return f"no CompositePodGroups are served by 1.{minor}: hierarchies of groups need Kubernetes 1.37"
    return (
        "no CompositePodGroups are served: groups that name one wait. To have them, start kube-apiserver "
        "with --feature-gates=CompositePodGroup=true,TopologyAwareWorkloadScheduling=true and "
        "--runtime-config=scheduling.k8s.io/v1alpha3=true"
    )


def _others_missing(group: str, resources: Sequence[str]) -> str:
    version = catalog.by_resource(resources[0]).version
    named = ", ".join(resources)
    return (
        f"{named} of {group or 'the core group'} are not served in a version that is understood: scheduling goes on as "
        f"if there were none. To have them, start kube-apiserver with --runtime-config={group}/{version}=true"
    )


def questions(resources: Iterable[str]) -> list[Request]:
    """What to ask: the server's version, then each group and version of these resources."""
    pairs = dict.fromkeys(
        (catalog.by_resource(resource).group, version) for resource in resources for version in understood(resource)
    )
    paths = [f"/apis/{group}/{version}" if group else f"/api/{version}" for group, version in pairs]
    return [Request("GET", path) for path in ("/version", *paths)]


def offered(resources: Sequence[str], answers: Mapping[str, Response]) -> Offer:
    """Reads the answers, by path. A group or version that is answered with 404 is not there."""
    versions: dict[str, str] = {}
    for resource in resources:
        group = catalog.by_resource(resource).group
        for version in understood(resource):
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            if resource in _names(answers.get(path)):
                versions[resource] = version
                break
    about = answers.get("/version")
    told: Mapping[str, Any] = about.body if about is not None and isinstance(about.body, Mapping) else {}
    minor = re.match(r"\d+", str(told.get("minor", "")))
    return Offer(versions, int(minor[0]) if minor else None, str(told.get("gitVersion", "")))


def unusable(offer: Offer) -> str:
    """Why nothing can be scheduled with this server; "": something can."""
    missing = sorted(name for name in _ESSENTIAL if not offer.has(name))
    return f"it serves no {', '.join(missing)} in v1: is it a Kubernetes API server?" if missing else ""


def _names(answer: Response | None) -> set[str]:
    body = answer.body if answer is not None and answer.ok else None
    listed = body.get("resources") if isinstance(body, Mapping) else None
    return {str(one.get("name")) for one in listed or () if isinstance(one, Mapping) and "list" in one.get("verbs", ())}
