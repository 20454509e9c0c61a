"""The parser gate: a Job that runs the parser regressions inside the serving image, on the CPU."""

from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision
from gemmaserve_operator.desired.check_job import CHECK_ENV, REPORT_PATH, Check, build_check_job
from gemmaserve_operator.desired.common import Json, Owner, build_env

VERDICT_EXIT_CODES: Final = (1, 2, 126, 127)
"""Tests failed, could not run, not executable, not found: the image's fault, so another try would say the same."""

_RESOURCES: Final[Json] = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}


def build_gate_job(owner: Owner, revision: Revision, *, timeout_seconds: int) -> Json:
    """The parser gate of a revision; one pod of it may take so many seconds, the image's pull included."""
    spec = revision.spec
    command = ["gemmaserve-parser", "regressions", "--report", REPORT_PATH]
    check = Check(
        job_name=names.gate_job_name(owner.name, revision.name),
        component=names.COMPONENT_GATE,
        verdict_exit_codes=VERDICT_EXIT_CODES,
        deadline_seconds=timeout_seconds,
        container={
            "name": names.CONTAINER_GATE,
            "image": spec.image.reference,
            "imagePullPolicy": _pull_policy(revision),
            "command": [*command, "--parser", spec.engine.effective_tool_call_parser],
            "env": build_env(spec, CHECK_ENV),
            "resources": _RESOURCES,
        },
    )
    return build_check_job(owner, revision, check)


def _pull_policy(revision: Revision) -> str:
    """A tag is resolved here: what a node happens to hold under it may be old."""
    image = revision.spec.image
    return "Always" if image.tag and image.pull_policy == "IfNotPresent" else image.pull_policy
