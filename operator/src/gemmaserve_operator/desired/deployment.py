"""The Deployment of a revision: vLLM on the image that the gate has verified, by digest."""

import math
from collections.abc import Mapping
from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision, VerifiedRevision
from gemmaserve_operator.api.spec import RevisionSpec
from gemmaserve_operator.desired.common import (
    CACHE_PATH,
    Json,
    Owner,
    build_env,
    build_metadata,
    build_placement,
    container_security_context,
    pod_security_context,
    verified_annotations,
)
from gemmaserve_operator.desired.server_args import MODELS_PATH, build_server_args, model_source

TEMPLATE_VERSION: Final = "3"
"""Raised with every change of the pod template for an unchanged spec. A Deployment made by another version keeps its
template, so that upgrading the operator restarts no serving pod."""
STARTUP_PROBE_PERIOD_SECONDS: Final = 10
SETTLE_SECONDS: Final = 5
"""Time for every node to learn that a stopping pod takes no new connections, before it may be found idle."""
EXIT_SECONDS: Final = 10
"""Time for vLLM to end once it is told to, after its requests have finished or were given up."""
_ENDS_SOON: Final[Json] = {"terminationGracePeriodSeconds": SETTLE_SECONDS + EXIT_SECONDS}
"""Of probes whose failure restarts the container: a server that answers nothing is not waited for."""

_ENV: Final = {
    "XDG_CACHE_HOME": CACHE_PATH,
    "XDG_CONFIG_HOME": "/tmp/.config",  # noqa: S108 - a volume of the pod's own
    "HF_HOME": f"{CACHE_PATH}/huggingface",
    "TRITON_CACHE_DIR": f"{CACHE_PATH}/triton",
}


def build_deployment(
    owner: Owner,
    verified: VerifiedRevision,
    *,
    replicas: int,
    progress_deadline_seconds: int,
    marks: Mapping[str, str] | None = None,
) -> Json:
    """The Deployment of a verified revision.

    Args:
        owner: The GemmaServe.
        verified: What is served; pods run the very image that the gate has passed.
        replicas: How many pods.
        progress_deadline_seconds: When Kubernetes reports that pods do not come up.
        marks: Annotations that tell what has become of the revision (served, given up).
    """
    revision = verified.revision
    annotations = verified_annotations(verified) | {names.ANNOTATION_TEMPLATE_VERSION: TEMPLATE_VERSION}
    annotations |= marks or {}
    labels = names.labels(owner.name, names.COMPONENT_SERVER, revision.name)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": build_metadata(owner, names.revision_name(owner.name, revision.name), labels, annotations),
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": progress_deadline_seconds,
            # No surge: a pod more than asked for may wait for a GPU for ever, and the old pods with it.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "selector": {"matchLabels": names.server_selector(owner.name, revision.name)},
            "template": {
                "metadata": {"labels": labels},
                "spec": _build_pod_spec(owner, revision, verified.digest),
            },
        },
    }


def _build_pod_spec(owner: Owner, revision: Revision, digest: str) -> Json:
    spec = revision.spec
    pod: Json = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # vLLM must not be process 1: the kernel keeps SIGTERM from a process 1 without a handler, and vLLM has none
        # while it loads a model, so that a pod told to stop then would hold its GPU for the whole grace period.
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": grace_seconds(revision),
        "securityContext": pod_security_context(),
        **build_placement(spec),
        "containers": [_build_container(owner, revision, digest)],
        "volumes": _build_volumes(spec),
    }
    scheduling = spec.scheduling
    if scheduling.priority_class_name:
        pod["priorityClassName"] = scheduling.priority_class_name
    if scheduling.runtime_class_name:
        pod["runtimeClassName"] = scheduling.runtime_class_name
    if scheduling.topology_spread_constraints:
        own_pods = {"matchLabels": names.server_selector(owner.name, revision.name)}
        pod["topologySpreadConstraints"] = [
            {"labelSelector": own_pods} | constraint.model_dump(by_alias=True, exclude_none=True)
            for constraint in scheduling.topology_spread_constraints
        ]
    return pod


def grace_seconds(revision: Revision) -> int:
    """How long a serving container may take to end once the kubelet has told it to: the drain, and a little around."""
    return SETTLE_SECONDS + revision.drain_timeout_seconds + EXIT_SECONDS


def _build_container(owner: Owner, revision: Revision, digest: str) -> Json:
    spec = revision.spec
    mounts: list[Json] = [
        {"name": "cache", "mountPath": CACHE_PATH},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a volume of the pod's own
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
    ]
    if model_source(spec.model.uri).volume is not None:
        mounts.append({"name": "model", "mountPath": MODELS_PATH, "readOnly": True})
    return {
        "name": names.CONTAINER_SERVER,
        "image": f"{spec.image.repository}@{digest}",
        "imagePullPolicy": spec.image.pull_policy,
        "args": build_server_args(spec, served_name=owner.name),
        "env": build_env(spec, _ENV),
        "ports": [{"name": names.PORT_NAME, "containerPort": names.SERVING_PORT, "protocol": "TCP"}],
        "resources": _build_resources(spec),
        "securityContext": container_security_context(),
        "startupProbe": _build_probe(
            period=STARTUP_PROBE_PERIOD_SECONDS,
            failures=math.ceil(spec.startup_timeout_seconds / STARTUP_PROBE_PERIOD_SECONDS),
        )
        | _ENDS_SOON,
        "readinessProbe": _build_probe(period=5, failures=3),
        "livenessProbe": _build_probe(period=10, failures=6) | _ENDS_SOON,
        "lifecycle": {"preStop": {"exec": {"command": _build_drain(revision)}}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _build_drain(revision: Revision) -> list[str]:
    return [
        "gemmaserve-parser",
        "drain",
        f"--port={names.SERVING_PORT}",
        f"--settle={SETTLE_SECONDS}",
        f"--timeout={revision.drain_timeout_seconds}",
    ]


def _build_probe(*, period: int, failures: int) -> Json:
    return {
        "httpGet": {"path": "/health", "port": names.PORT_NAME},
        "periodSeconds": period,
        "failureThreshold": failures,
        "timeoutSeconds": 5,
    }


def _build_resources(spec: RevisionSpec) -> Json:
    limits = dict(spec.resources.limits)
    if spec.gpu_count:
        limits[spec.resources.gpu.resource] = str(spec.gpu_count)
    resources: Json = {}
    if spec.resources.requests:
        resources["requests"] = dict(spec.resources.requests)
    if limits:
        resources["limits"] = limits
    return resources


def _build_volumes(spec: RevisionSpec) -> list[Json]:
    claim = spec.storage.cache.claim
    cache: Json = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
    volumes: list[Json] = [
        {"name": "cache", **cache},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": spec.storage.shared_memory}},
        {"name": "tmp", "emptyDir": {}},
    ]
    if (source := model_source(spec.model.uri).volume) is not None:
        volumes.append(source)
    return volumes
