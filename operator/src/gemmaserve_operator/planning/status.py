"""The status: what the plan and the cluster's state mean to a person."""

from dataclasses import replace

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.conditions import (
    AVAILABLE,
    DEGRADED,
    PARSER_VERIFIED,
    PROGRESSING,
    READY,
    Condition,
    render_conditions,
)
from gemmaserve_operator.api.status import GemmaServeStatus, Phase, RevisionStatus, Summary, VerificationStatus
from gemmaserve_operator.planning.candidate import is_ready, ready_replicas
from gemmaserve_operator.planning.history import build_history
from gemmaserve_operator.planning.live import live_condition
from gemmaserve_operator.planning.objects import dig
from gemmaserve_operator.planning.problems import Problem
from gemmaserve_operator.planning.rollout import Rollout
from gemmaserve_operator.planning.traffic import is_confirmed, ready_endpoints
from gemmaserve_operator.planning.types import Json
from gemmaserve_operator.planning.verdict import Verdict
from gemmaserve_operator.planning.view import RevisionState, View


def build_status(view: View, rollout: Rollout, obstacle: Problem | None) -> Json:
    """The whole status; equal to the last one when nothing has changed. An obstacle comes before other problems."""
    rollout = replace(rollout, problem=obstacle or rollout.problem)
    resource = view.snapshot.resource
    previous = resource.get("status") or {}
    generation = int(resource["metadata"].get("generation") or 0)
    active = _revision_status(view, view.active, None)
    candidate = _revision_status(view, view.candidate, rollout.gate.verdict)
    serving = view.state(view.active) if view.active else None
    ready = ready_replicas(serving) if serving else 0
    conditions = _conditions(view, rollout)
    status = GemmaServeStatus(
        observed_generation=generation,
        phase=_phase(view, rollout),
        url=_url(view) if view.active else None,
        replicas=int(dig(serving.deployment, "status", "replicas") or 0) if serving else 0,
        ready_replicas=ready,
        selector=_selector(view) if view.active else None,
        active_revision=active,
        candidate_revision=candidate,
        history=build_history(view, rollout, previous, active, candidate),
        summary=Summary(replicas=f"{ready}/{view.spec.replicas}", verified=_verified_column(candidate or active)),
    ).model_dump(mode="json", by_alias=True, exclude_none=True)
    status["conditions"] = render_conditions(conditions, previous.get("conditions") or [], generation, view.now)
    return status


def _url(view: View) -> str:
    port = view.spec.routing.service.port
    host = f"{names.main_service_name(view.owner.name)}.{view.owner.namespace}.svc"
    return f"http://{host}/v1" if port == 80 else f"http://{host}:{port}/v1"


def _selector(view: View) -> str:
    return ",".join(
        f"{key}={value}" for key, value in names.server_selector(view.owner.name, view.active or "").items()
    )


def _revision_status(view: View, name: str | None, verdict: Verdict | None) -> RevisionStatus | None:
    if name is None:
        return None
    state = view.state(name)
    verdict = verdict or state.verdict
    spec = view.target.spec if name == view.target.name else state.revision.spec if state.revision else None
    digest = verdict.digest if verdict else None
    image = "" if spec is None else f"{spec.image.repository}@{digest}" if digest else spec.image.reference
    return RevisionStatus(
        name=name,
        image=image,
        created_at=state.created,
        verification=_verification(verdict, state) if verdict else None,
    )


def _verification(verdict: Verdict, state: RevisionState) -> VerificationStatus:
    return VerificationStatus(parser=verdict.record, live=state.live.record if state.live else None)


def _verified_column(revision: RevisionStatus | None) -> str | None:
    if revision is None or revision.verification is None:
        return None
    record = revision.verification.parser
    return f"{record.passed}/{record.total}"


def _shortage(view: View) -> Problem | None:
    """Fewer ready pods of the active revision than asked for."""
    if view.active is None or is_ready(view.state(view.active), view.spec.replicas):
        return None
    ready, asked = ready_replicas(view.state(view.active)), view.spec.replicas
    if ready >= asked:
        return None
    return Problem(reasons.REPLICAS_NOT_READY, f"{ready} of {asked} pods of revision {view.active} are ready")


def _conditions(view: View, rollout: Rollout) -> tuple[Condition, ...]:
    return (
        _available(view),
        _ready(view, rollout),
        _progressing(rollout),
        _parser_verified(view, rollout),
        live_condition(view, rollout.live),
        _degraded(view, rollout),
    )


def _available(view: View) -> Condition:
    ready = ready_endpoints(view)
    if ready:
        return Condition(AVAILABLE, "True", reasons.SERVING, f"Revision {view.active} receives traffic")
    if view.active and view.spec.replicas == 0:
        return Condition(AVAILABLE, "False", reasons.SCALED_TO_ZERO, "spec.replicas is 0")
    message = (
        f"No pod of the active revision {view.active} is ready" if view.active else "No verified revision serves yet"
    )
    return Condition(AVAILABLE, "False", reasons.NOT_SERVING, message)


def _ready(view: View, rollout: Rollout) -> Condition:
    if view.candidate is None and rollout.problem is None and _shortage(view) is None and is_confirmed(view):
        return Condition(
            READY, "True", reasons.UP_TO_DATE, f"Revision {view.active} is verified and receives the traffic"
        )
    why = rollout.problem or rollout.progress or _shortage(view)
    if why is None:
        return Condition(READY, "False", reasons.SWITCHING_TRAFFIC, "Waiting for the Service's endpoints")
    return Condition(READY, "False", why.reason, why.message)


def _progressing(rollout: Rollout) -> Condition:
    if rollout.progress is not None:
        rests = rollout.progress.reason in (reasons.PAUSED, reasons.SCALED_TO_ZERO)
        return Condition(PROGRESSING, "False" if rests else "True", rollout.progress.reason, rollout.progress.message)
    if rollout.failed and rollout.problem is not None:
        return Condition(PROGRESSING, "False", rollout.problem.reason, rollout.problem.message)
    return Condition(PROGRESSING, "False", reasons.UP_TO_DATE, "Nothing is left to do")


def _parser_verified(view: View, rollout: Rollout) -> Condition:
    verdict, progress = rollout.gate.verdict, rollout.gate.problem or rollout.gate.progress
    if verdict is not None:
        return Condition(PARSER_VERIFIED, "True" if verdict.passed else "False", verdict.reason, verdict.message)
    if progress is not None:
        return Condition(PARSER_VERIFIED, "Unknown", progress.reason, progress.message)
    message = f"Revision {view.target.name} waits for its gate"
    return Condition(PARSER_VERIFIED, "Unknown", reasons.PARSER_REGRESSIONS_RUNNING, message)


def _degraded(view: View, rollout: Rollout) -> Condition:
    trouble = rollout.problem or _shortage(view)
    if trouble is None:
        return Condition(DEGRADED, "False", reasons.AS_EXPECTED, "Nothing is wrong")
    return Condition(DEGRADED, "True", trouble.reason, trouble.message)


def _phase(view: View, rollout: Rollout) -> Phase:
    """The first of these that holds."""
    trouble = rollout.problem or rollout.progress
    serves = view.active is not None
    choices: tuple[tuple[bool, Phase], ...] = (
        (rollout.failed and not serves, "Failed"),
        (rollout.failed, "Degraded"),
        (trouble is not None and trouble.reason == reasons.INSUFFICIENT_GPU, "WaitingForCapacity"),
        (serves and view.candidate is not None, "RollingOut"),
        (serves and (rollout.problem is not None or _shortage(view) is not None), "Degraded"),
        (serves, "Serving"),
        (rollout.gate.verdict is None, "Verifying"),
    )
    return next((phase for holds, phase in choices if holds), "Starting")
