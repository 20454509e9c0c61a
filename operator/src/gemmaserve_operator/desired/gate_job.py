"""The gate: a Job that runs the parser regressions inside the serving image, on the CPU."""

from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision
from gemmaserve_operator.desired.common import (
    Json,
    Owner,
    build_env,
    build_metadata,
    build_placement,
    container_security_context,
    pod_security_context,
    revision_annotations,
)

REPORT_PATH: Final = "/dev/termination-log"
VERDICT_EXIT_CODES: Final = (1, 2, 126, 127)
"""Tests failed, could not run, not executable, not found: the image's fault, so another try would say the same."""
OTHER_FAILURES_ALLOWED: Final = 2
"""Pods that may fail of anything else (out of memory, out of time) before the Job does."""

_ENV: Final = {
    "HOME": "/tmp",  # noqa: S108 - a volume of the pod's own
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108
    "XDG_CONFIG_HOME": "/tmp/.config",  # noqa: S108
    "HF_HOME": "/tmp/.cache/huggingface",  # noqa: S108
    # A node's default runtime may hand every GPU to any pod whose image asks for all of them, as CUDA images do.
    "NVIDIA_VISIBLE_DEVICES": "void",
}
_RESOURCES: Final[Json] = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}


def build_gate_job(owner: Owner, revision: Revision, *, timeout_seconds: int) -> Json:
    """The gate of a revision.

    An eviction or a lost node is no verdict and is not counted. The time limit is the pod's, not the Job's: a pod
    that ran out of time stays to be looked at, so that a slow pull can be told from slow tests.
    """
    labels = names.labels(owner.name, names.COMPONENT_GATE, revision.name)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": build_metadata(
            owner, names.gate_job_name(owner.name, revision.name), labels, revision_annotations(revision)
        ),
        "spec": {
            "backoffLimit": OTHER_FAILURES_ALLOWED,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": names.CONTAINER_GATE,
                            "operator": "In",
                            "values": list(VERDICT_EXIT_CODES),
                        },
                    },
                ]
            },
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "activeDeadlineSeconds": timeout_seconds,
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "securityContext": pod_security_context(),
                    **build_placement(revision.spec),
                    "containers": [_build_container(revision)],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }


def _build_container(revision: Revision) -> Json:
    spec = revision.spec
    return {
        "name": names.CONTAINER_GATE,
        "image": spec.image.reference,
        "imagePullPolicy": _pull_policy(revision),
        "command": [
            "gemmaserve-parser",
            "regressions",
            "--report",
            REPORT_PATH,
            "--parser",
            spec.engine.effective_tool_call_parser,
        ],
        "env": build_env(spec, _ENV),
        "resources": _RESOURCES,
        "securityContext": container_security_context(),
        "terminationMessagePath": REPORT_PATH,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }


def _pull_policy(revision: Revision) -> str:
    """A tag is resolved here: what a node happens to hold under it may be old."""
    image = revision.spec.image
    return "Always" if image.tag and image.pull_policy == "IfNotPresent" else image.pull_policy
