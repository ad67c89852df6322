"""The cluster as an expectation reads it: plain objects, fetched once each through whatever answers API calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from muster.api import catalog
from muster.api.calls import Request, Response

Json = Mapping[str, Any]
DEFAULT = "default"


class Observed:
    """Objects by kind and name at one moment.

    `call` sends one API request; `created` says which pods of a group the case has made and not deleted itself.
    """

    def __init__(
        self, call: Callable[[Request], Response], created: Mapping[str, Iterable[str]] = MappingProxyType({})
    ) -> None:
        self._call = call
        self._created = created
        self._every: dict[str, dict[tuple[str, str], Json]] = {}

    def every(self, kind: str) -> Mapping[tuple[str, str], Json]:
        """All objects of a kind by (namespace, name); namespace is "" for cluster-wide kinds."""
        found = self._every.get(kind)
        if found is None:
            found = self._every[kind] = {}
            for entry in served(kind):
                response = self._call(Request("GET", entry.path(None)))
                if response.ok:
                    for item in response.body["items"]:
                        meta = item["metadata"]
                        found[(meta.get("namespace", ""), meta["name"])] = item
                    break
        return found

    def get(self, kind: str, name: str) -> Json | None:
        """One object; `ns/name` names one outside namespace `default`."""
        return self.every(kind).get(_key(kind, name))

    def pod(self, name: str) -> Json | None:
        return self.get("Pod", name)

    def node_of(self, name: str) -> str:
        """The node of a pod; "" if it has none or does not exist."""
        return node_of(self.pod(name) or {})

    def members(self, group: str) -> list[Json]:
        """The pods of a PodGroup, bound or not."""
        namespace, name = _key("PodGroup", group)
        return [
            pod
            for (where, _), pod in self.every("Pod").items()
            if where == namespace and (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == name
        ]

    def bound_members(self, group: str) -> list[Json]:
        return [pod for pod in self.members(group) if node_of(pod)]

    def vanished(self, group: str) -> list[str]:
        """Pods that the case created in this group and that somebody else removed."""
        return [name for name in self._created.get(group, ()) if self.pod(name) is None]

    def domains(self, pods: Iterable[Json], key: str) -> set[str | None]:
        """The values of a node label that these bound pods have; None stands for a node without the label."""
        nodes = [self.get("Node", node_of(pod)) or {} for pod in pods]
        return {((node.get("metadata") or {}).get("labels") or {}).get(key) for node in nodes}


def served(kind: str) -> Sequence[catalog.Kind]:
    """The catalogue's entries for a kind that is named without its API version."""
    return [entry for entry in catalog.KINDS if entry.kind == kind]


def node_of(pod: Json) -> str:
    return (pod.get("spec") or {}).get("nodeName") or ""


def split(name: str) -> tuple[str, str]:
    """`ns/name`, or a name in namespace `default`."""
    namespace, _, rest = name.rpartition("/")
    return namespace or DEFAULT, rest


def _key(kind: str, name: str) -> tuple[str, str]:
    namespaced = all(entry.namespaced for entry in served(kind))
    return split(name) if namespaced else ("", name)
