"""The kinds that the operator reads and writes, and where the API server keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gemmaserve_operator.api import names

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name of a GemmaServe."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A namespaced kind of the API."""

    api_version: str
    kind: str
    plural: str
    selector: str | None = None
    """Label selector of the lists and watches; None for all."""

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection or of one object; no namespace means all of them."""
        parts = ["apis", self.group] if self.group else ["api"]
        parts.append(self.version)
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/" + "/".join(parts)

    def owner_key(self, obj: Json) -> Key | None:
        """The GemmaServe that an object of this kind is or belongs to, by label; None for a stranger's object."""
        metadata = obj["metadata"]
        if self == GEMMASERVE:
            return metadata["namespace"], metadata["name"]
        labels: Mapping[str, str] = metadata.get("labels") or {}
        name = labels.get(names.LABEL_NAME)
        return (metadata["namespace"], name) if name else None


_OURS: Final = names.LABEL_NAME

GEMMASERVE: Final = Kind(names.API_VERSION, names.KIND, names.PLURAL)
JOB: Final = Kind("batch/v1", "Job", "jobs", _OURS)
DEPLOYMENT: Final = Kind("apps/v1", "Deployment", "deployments", _OURS)
SERVICE: Final = Kind("v1", "Service", "services", _OURS)
POD: Final = Kind("v1", "Pod", "pods", _OURS)
ENDPOINT_SLICE: Final = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", _OURS)
CONTROLLER_REVISION: Final = Kind("apps/v1", "ControllerRevision", "controllerrevisions", _OURS)

WATCHED: Final = (GEMMASERVE, JOB, DEPLOYMENT, SERVICE, POD, ENDPOINT_SLICE, CONTROLLER_REVISION)
WRITTEN: Final = {kind.kind: kind for kind in (JOB, DEPLOYMENT, SERVICE, CONTROLLER_REVISION)}
"""Children that plans write, by kind; the others are made by Kubernetes' own controllers."""

EVENT: Final = Kind("events.k8s.io/v1", "Event", "events")
LEASE: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
