"""The candidate: its pods beside, or in place of, those that serve, until they are ready to be switched to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.revision import VerifiedRevision
from gemmaserve_operator.api.times import format_time, parse_time
from gemmaserve_operator.desired.deployment import build_deployment, grace_seconds
from gemmaserve_operator.desired.services import build_revision_service
from gemmaserve_operator.planning.objects import condition, created, dig
from gemmaserve_operator.planning.problems import PodContext, Problem, find_problem
from gemmaserve_operator.planning.refusals import explain_refusal
from gemmaserve_operator.planning.types import Json, Write
from gemmaserve_operator.planning.view import RevisionState, View
from gemmaserve_operator.planning.writes import ensure, keep_foreign_template


@dataclass(frozen=True, slots=True)
class Serving:
    """What is to be done about a revision's serving children, and how they fare."""

    writes: tuple[Write, ...] = ()
    ready: bool = False
    """As many pods as asked for are ready, all of this revision's template, and nothing of it is to be written; from
    the live gate on also: traffic may move to them."""
    progress: Problem | None = None
    problem: Problem | None = None
    failed: bool = False
    """Given up: only a new spec or a retry goes on."""
    requeue_after: float | None = None


def serve(
    view: View, verified: VerifiedRevision, *, replicas: int, marks: Mapping[str, str] | None = None
) -> tuple[Write, ...]:
    """The writes that bring a verified revision's Deployment and Service to what they should be.

    Marks are added to those that the Deployment bears. Both gates' verdicts stand on the Service too, so that they
    outlive either; that traffic moved to the revision is told by the main Service as well.
    """
    state = view.state(verified.revision.name)
    passed = state.live.to_annotations() if state.live else {}
    deployment = build_deployment(
        view.owner,
        verified,
        replicas=replicas,
        progress_deadline_seconds=view.spec.rollout.progress_deadline_seconds,
        marks=passed | _marks(state) | dict(marks or {}),
    )
    service = build_revision_service(view.owner, verified, marks=passed)
    return (
        *ensure(keep_foreign_template(deployment, state.deployment), state.deployment, view.strangers),
        *ensure(service, state.service, view.strangers),
    )


def _marks(state: RevisionState) -> dict[str, str]:
    marks = {}
    if state.failed is not None:
        marks[names.ANNOTATION_FAILED] = state.failed
    if state.serving_since is not None:
        marks[names.ANNOTATION_SERVING_SINCE] = state.serving_since
    return marks


def bring_up(view: View, verified: VerifiedRevision) -> Serving:
    """The next step that brings the candidate's pods up."""
    state = view.state(verified.revision.name)
    if state.failed is not None:
        return Serving(writes=serve(view, verified, replicas=0), problem=_given_up(state.failed), failed=True)
    if view.spec.verification.live.enabled and state.live is not None and not state.live.passed:
        held = Problem(state.live.reason, state.live.message)
        return Serving(writes=serve(view, verified, replicas=0), problem=held, failed=True)
    if state.deployment is None:
        return _create(view, verified)
    writes = serve(view, verified, replicas=view.spec.replicas)
    if not writes and is_ready(state, view.spec.replicas):
        return Serving(ready=True)
    problem = pod_problem(view, state)
    missed, wait = deadline(view, state, problem)
    if missed is not None and view.active is not None:
        failed = json.dumps({"reason": missed.reason, "message": missed.message, "at": format_time(view.now)})
        return Serving(
            writes=serve(view, verified, replicas=0, marks={names.ANNOTATION_FAILED: failed}),
            problem=missed,
            failed=True,
        )
    return Serving(writes=writes, progress=_progress(view, state), problem=missed or problem, requeue_after=wait)


def _progress(view: View, state: RevisionState) -> Problem:
    ready, asked = ready_replicas(state), view.spec.replicas
    if state.live is not None and ready >= asked:
        # Its Deployment's controller takes a moment over the annotation, as over any change.
        return Problem(reasons.SWITCHING_TRAFFIC, f"Revision {state.name} has passed; its verdict is being kept")
    since = created(state.deployment) if state.deployment else None
    return Problem(reasons.STARTING_PODS, f"Revision {state.name}: {ready} of {asked} pods are ready, since {since}")


def is_ready(state: RevisionState, asked: int) -> bool:
    """Whether the Deployment controller has seen the present spec and counts exactly the asked pods, all ready."""
    deployment = state.deployment
    status = dig(deployment, "status") or {}
    if status.get("observedGeneration", 0) < (dig(deployment, "metadata", "generation") or 0):
        return False
    counts = (status.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas"))
    return all(count == asked for count in counts)


def ready_replicas(state: RevisionState) -> int:
    """Ready pods, by the Deployment's own count."""
    return int(dig(state.deployment, "status", "readyReplicas") or 0)


def pod_problem(view: View, state: RevisionState) -> Problem | None:
    """What keeps pods of a revision from running, or from being made at all."""
    revision = state.revision or view.target
    context = PodContext(
        container=names.CONTAINER_SERVER,
        gpu_resource=revision.spec.resources.gpu.resource,
        startup_timeout_seconds=revision.spec.startup_timeout_seconds,
        stop_timeout_seconds=grace_seconds(revision),
    )
    found = find_problem((pod for pod in state.pods if not dig(pod, "metadata", "deletionTimestamp")), context)
    if found is not None:
        return found
    refused = condition(state.deployment, "ReplicaFailure")
    if refused is None:
        return None
    return explain_refusal(
        f"pods of revision {state.name}", str(refused.get("message")), otherwise=reasons.PODS_REFUSED
    )


def short_of_gpus_since(state: RevisionState, problem: Problem | None) -> datetime | None:
    """Since when pods of the candidate wait for GPUs; None when they do not."""
    if problem is None or problem.reason != reasons.INSUFFICIENT_GPU:
        return None
    times = (_scheduled_changed(pod, "False") for pod in state.pods)
    return min((moment for moment in times if moment is not None), default=None)


def _create(view: View, verified: VerifiedRevision) -> Serving:
    if view.spec.rollout.paused:
        message = "Paused before the new revision's pods are made; set spec.rollout.paused: false"
        return Serving(progress=Problem(reasons.PAUSED, message))
    active = view.state(view.active) if view.active else None
    if view.spec.rollout.strategy == "Recreate" and active is not None and active.pods:
        message = f"Revision {active.name} stops first (spec.rollout.strategy: Recreate): {len(active.pods)} pods left"
        return Serving(progress=Problem(reasons.STOPPING_OLD_REVISION, message))
    name = verified.revision.name
    return Serving(
        writes=serve(view, verified, replicas=view.spec.replicas),
        progress=Problem(reasons.STARTING_PODS, f"Revision {name}: 0 of {view.spec.replicas} pods are ready"),
    )


def deadline(view: View, state: RevisionState, problem: Problem | None) -> tuple[Problem | None, float | None]:
    """The problem that the progress deadline has passed, or else the seconds until it will.

    It runs from when the last pod found a node: waiting for GPUs is no lack of progress.
    """
    if problem is not None and problem.reason == reasons.INSUFFICIENT_GPU:
        return None, None
    made = parse_time(created(state.deployment)) if state.deployment else None
    starts = [made, *(_scheduled_changed(pod, "True") for pod in state.pods)]
    start = max((moment for moment in starts if moment is not None), default=view.now)
    limit = view.spec.rollout.progress_deadline_seconds
    wait = (start + timedelta(seconds=limit) - view.now).total_seconds()
    if wait > 0:
        return None, wait
    last = f": {problem.message}" if problem else ""
    return Problem(
        reasons.PROGRESS_DEADLINE_EXCEEDED, f"Revision {state.name} was not ready within {limit} s{last}"
    ), None


def _scheduled_changed(pod: Json, status: str) -> datetime | None:
    conditions = dig(pod, "status", "conditions") or []
    found = (c for c in conditions if c.get("type") == "PodScheduled" and c.get("status") == status)
    return next((parse_time(c.get("lastTransitionTime")) for c in found), None)


def _given_up(failed: str) -> Problem:
    try:
        content = json.loads(failed)
        return Problem(
            str(content["reason"]),
            f"{content['message']}. Given up at {content['at']}: change the spec "
            f"or set the annotation {names.ANNOTATION_RETRY}",
        )
    except (ValueError, KeyError, TypeError):
        return Problem(reasons.PROGRESS_DEADLINE_EXCEEDED, "This revision was given up")
