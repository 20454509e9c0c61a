"""The live gate: a Job that asks a candidate's pods for tool calls, through the Service that selects only them."""

from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import VerifiedRevision
from gemmaserve_operator.api.spec import Engine, LiveVerification
from gemmaserve_operator.desired.check_job import CHECK_ENV, REPORT_PATH, Check, build_check_job
from gemmaserve_operator.desired.common import Json, Owner

VERDICT_EXIT_CODES: Final = (1, 126, 127)
"""Rules were broken, not executable, not found. 2 is none of them: the pods could not be asked, and may be in a moment,
when every node knows the Service."""
START_SECONDS: Final = 600
"""What one pod may take beyond the check itself: the image's pull, where the node does not have it yet."""

_RESOURCES: Final[Json] = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def build_live_job(owner: Owner, verified: VerifiedRevision, live: LiveVerification) -> Json:
    """The live gate of a verified revision whose pods are ready.

    Args:
        owner: The GemmaServe.
        verified: What is checked; the Job runs the very image that serves.
        live: How many requests, how many at a time, and how long all of them may take.
    """
    revision = verified.revision
    spec = revision.spec
    url = f"http://{names.revision_name(owner.name, revision.name)}.{owner.namespace}.svc"
    limit = str(live.timeout_seconds)
    command = ["toolstream", "check", url, "--gate"]
    command += ["--requests", str(live.requests), "--concurrency", str(live.concurrency)]
    # One request may take as long as all of them: what is slow is the user's to judge.
    command += ["--timeout", limit, "--max-seconds", limit]
    command += ["--parser", spec.engine.effective_tool_call_parser, "--report", REPORT_PATH]
    check = Check(
        job_name=names.live_job_name(owner.name, revision.name),
        component=names.COMPONENT_LIVE,
        verdict_exit_codes=VERDICT_EXIT_CODES,
        deadline_seconds=live.timeout_seconds + START_SECONDS,
        container={
            "name": names.CONTAINER_LIVE,
            "image": f"{spec.image.repository}@{verified.digest}",
            "imagePullPolicy": spec.image.pull_policy,
            "command": command,
            "env": [{"name": name, "value": value} for name, value in (CHECK_ENV | _api_key(spec.engine)).items()],
            "resources": _RESOURCES,
        },
    )
    return build_check_job(owner, revision, check)


def _api_key(engine: Engine) -> dict[str, str]:
    """The key that the server is told to ask for, where `engine` holds one: by its argument, else by its variable."""
    words = [word for argument in engine.args for word in argument.split("=", maxsplit=1)]
    flags = [number for number, word in enumerate(words) if word.replace("_", "-") == "--api-key"]
    keys = [words[number + 1] for number in flags if number + 1 < len(words)]
    keys += [variable.value for variable in engine.env if variable.name == "VLLM_API_KEY"]
    return {"TOOLSTREAM_API_KEY": keys[0]} if keys else {}
