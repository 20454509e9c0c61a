"""What the Jobs of both gates have in common: one container of the serving image that reports and ends."""

from dataclasses import dataclass
from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision
from gemmaserve_operator.desired.common import (
    Json,
    Owner,
    build_metadata,
    build_placement,
    container_security_context,
    pod_security_context,
    revision_annotations,
)

REPORT_PATH: Final = "/dev/termination-log"
OTHER_FAILURES_ALLOWED: Final = 2
"""Pods that may fail of anything but a verdict (out of memory, out of time) before the Job does."""
CHECK_ENV: Final = {
    "HOME": "/tmp",  # noqa: S108 - a volume of the pod's own
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108
    "XDG_CONFIG_HOME": "/tmp/.config",  # noqa: S108
    "HF_HOME": "/tmp/.cache/huggingface",  # noqa: S108
    # A node's default runtime may hand every GPU to any pod whose image asks for all of them, as CUDA images do.
    "NVIDIA_VISIBLE_DEVICES": "void",
}


@dataclass(frozen=True, slots=True)
class Check:
    """What a gate's Job runs."""

    job_name: str
    component: str
    """Label of the Job and its pods."""
    verdict_exit_codes: tuple[int, ...]
    """Exit codes other than 0 that end the Job: another try would say the same."""
    deadline_seconds: int
    """How long one pod may take on its node."""
    container: Json
    """Its name, image, command, environment and resources."""


def build_check_job(owner: Owner, revision: Revision, check: Check) -> Json:
    """The Job of a gate.

    An eviction or a lost node is no verdict and is not counted. The time limit is the pod's, not the Job's: a pod
    that ran out of time stays to be looked at, so that a slow pull can be told from a slow check.
    """
    labels = names.labels(owner.name, check.component, revision.name)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": build_metadata(owner, check.job_name, labels, revision_annotations(revision)),
        "spec": {
            "backoffLimit": OTHER_FAILURES_ALLOWED,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": check.container["name"],
                            "operator": "In",
                            "values": list(check.verdict_exit_codes),
                        },
                    },
                ]
            },
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "activeDeadlineSeconds": check.deadline_seconds,
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "securityContext": pod_security_context(),
                    **build_placement(revision.spec),
                    "containers": [
                        {
                            **check.container,
                            "securityContext": container_security_context(),
                            "terminationMessagePath": REPORT_PATH,
                            "terminationMessagePolicy": "FallbackToLogsOnError",
                            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
                        }
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }
