"""Names that other software sees: group and kind, labels, annotations, components, the names of children.

All of them are part of the public interface: changing one orphans what an older operator made.
"""

from typing import Final

GROUP: Final = "gemmaserve.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "GemmaServe"
PLURAL: Final = "gemmaserves"
SINGULAR: Final = "gemmaserve"
SHORT_NAME: Final = "gs"

FIELD_MANAGER: Final = "gemmaserve-operator"
"""The one field manager of server-side apply; also the value of `app.kubernetes.io/managed-by`."""

LABEL_NAME: Final = f"{GROUP}/name"
LABEL_REVISION: Final = f"{GROUP}/revision"
LABEL_APP_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_SERVICE_NAME: Final = "kubernetes.io/service-name"
"""Set by Kubernetes on EndpointSlices; all other labels there are copied from the Service."""

APP_NAME: Final = "gemmaserve"

COMPONENT_GATE: Final = "gate"
"""The Job that runs the parser regressions, and its pods. Never selected by a Service."""
COMPONENT_LIVE: Final = "live"
"""The Job that asks a candidate's pods for tool calls, and its pods. Never selected by a Service."""
GATES: Final = frozenset({COMPONENT_GATE, COMPONENT_LIVE})
"""Whose Jobs `--max-concurrent-gates` bounds."""
COMPONENT_SERVER: Final = "server"
"""A revision's Deployment, its pods, and the Service that selects only that revision."""
COMPONENT_ENDPOINT: Final = "endpoint"
"""The Service that clients use; its selector names the active revision."""
COMPONENT_RECORD: Final = "record"
"""The ControllerRevision that keeps what a revision was made from once its pods have gone."""

ANNOTATION_RETRY: Final = f"{GROUP}/retry"
"""On a GemmaServe: any new value asks for another attempt. On children: the value they were made under."""
ANNOTATION_VERIFICATION: Final = f"{GROUP}/verification"
"""On a gate Job and on a Deployment: the gate's record as JSON, kept when the gate's pod is gone."""
ANNOTATION_IMAGE_DIGEST: Final = f"{GROUP}/image-digest"
"""On a gate Job and on a Deployment: `sha256:...` of the image that the verification is about."""
ANNOTATION_LIVE_VERIFICATION: Final = f"{GROUP}/live-verification"
"""On a live Job, and on the Deployment and Service that it was about: the live check's record as JSON."""
ANNOTATION_REVISION_SPEC: Final = f"{GROUP}/revision-spec"
"""On every child of a revision: the part of the spec it was made from, as JSON, so that it can be made again."""
ANNOTATION_TEMPLATE_VERSION: Final = f"{GROUP}/template-version"
"""On a Deployment: the version of the pod template's builder; another version's template is left as it stands."""
ANNOTATION_FAILED: Final = f"{GROUP}/failed"
"""On a candidate's Deployment that was given up: reason, message and time as JSON."""
ANNOTATION_SERVING_SINCE: Final = f"{GROUP}/serving-since"
"""On a revision's Deployment and Service: when traffic moved to it (RFC 3339, UTC). What bears it may be serving: it
goes only once its successor is confirmed, and the latest one is found again when the main Service is lost."""

CONTAINER_GATE: Final = "gate"
CONTAINER_LIVE: Final = "live"
CONTAINER_SERVER: Final = "server"
PORT_NAME: Final = "http"
SERVING_PORT: Final = 8000

MAX_NAME_LENGTH: Final = 47
"""Longest `metadata.name`: with `-`, ten characters of revision and `-gate` or `-live` it fills a label value's 63."""


def gate_job_name(name: str, revision: str) -> str:
    """The Job that runs the parser regressions of a revision."""
    return f"{name}-{revision}-gate"


def live_job_name(name: str, revision: str) -> str:
    """The Job that asks a revision's pods for tool calls before traffic moves to them."""
    return f"{name}-{revision}-live"


def revision_name(name: str, revision: str) -> str:
    """The Deployment of a revision, the Service that selects only its pods, and the record of it when it has left."""
    return f"{name}-{revision}"


def main_service_name(name: str) -> str:
    """The Service that clients use."""
    return name


def labels(name: str, component: str, revision: str | None = None) -> dict[str, str]:
    """The labels of a child; `revision` is left out for what outlives revisions (the main Service)."""
    common = {
        LABEL_APP_NAME: APP_NAME,
        LABEL_INSTANCE: name,
        LABEL_COMPONENT: component,
        LABEL_MANAGED_BY: FIELD_MANAGER,
        LABEL_NAME: name,
    }
    return common if revision is None else common | {LABEL_REVISION: revision}


def server_selector(name: str, revision: str) -> dict[str, str]:
    """Selects the serving pods of one revision: never the gate's pods, which share name and revision."""
    return {LABEL_COMPONENT: COMPONENT_SERVER, LABEL_NAME: name, LABEL_REVISION: revision}
