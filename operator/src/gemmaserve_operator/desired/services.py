"""The Service that clients use, and the Service of a single revision."""

from collections.abc import Mapping

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import VerifiedRevision
from gemmaserve_operator.api.spec import RoutingService
from gemmaserve_operator.desired.common import Json, Owner, build_metadata, verified_annotations


def build_main_service(owner: Owner, revision: str, routing: RoutingService) -> Json:
    """The Service that clients use, named as the GemmaServe, selecting the pods of one revision."""
    labels = names.labels(owner.name, names.COMPONENT_ENDPOINT)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": build_metadata(owner, names.main_service_name(owner.name), labels),
        "spec": {
            "type": routing.type,
            "selector": names.server_selector(owner.name, revision),
            "ports": [_build_port(routing.port)],
        },
    }


def build_revision_service(owner: Owner, verified: VerifiedRevision, *, marks: Mapping[str, str] | None = None) -> Json:
    """The Service that selects only one revision's pods, for checks before traffic moves to them.

    Args:
        owner: The GemmaServe.
        verified: The revision.
        marks: Annotations that tell what has become of the revision, as on its Deployment.
    """
    revision = verified.revision
    labels = names.labels(owner.name, names.COMPONENT_SERVER, revision.name)
    annotations = verified_annotations(verified) | dict(marks or {})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": build_metadata(owner, names.revision_name(owner.name, revision.name), labels, annotations),
        "spec": {
            "type": "ClusterIP",
            "selector": names.server_selector(owner.name, revision.name),
            "ports": [_build_port(80)],
        },
    }


def _build_port(port: int) -> Json:
    return {"name": names.PORT_NAME, "port": port, "targetPort": names.PORT_NAME, "protocol": "TCP"}
