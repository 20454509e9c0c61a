"""`plan()`: what to write, what to show, what to say, and when to look again."""

from datetime import datetime

from pydantic import ValidationError

from gemmaserve_operator.api import reasons
from gemmaserve_operator.api.conditions import DEGRADED, PROGRESSING, READY, Condition, render_conditions
from gemmaserve_operator.api.metadata import NAME_RULE
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.planning.events import build_events
from gemmaserve_operator.planning.obstacles import find_obstacle
from gemmaserve_operator.planning.rollout import roll_out
from gemmaserve_operator.planning.status import build_status
from gemmaserve_operator.planning.types import Json, Plan, Snapshot
from gemmaserve_operator.planning.view import build_view


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """What to do about one GemmaServe.

    Level-triggered: it looks only at what is. Called again after any prefix of its writes, or after none of them,
    it leads to the same end. It never raises for anything a user or a cluster may hold.
    """
    resource = snapshot.resource
    previous = resource.get("status") or {}
    if resource["metadata"].get("deletionTimestamp"):
        return Plan(writes=(), status=previous)
    if not NAME_RULE.check(resource["metadata"]["name"]):
        return _invalid(resource, NAME_RULE.message, now)
    try:
        spec = GemmaServeSpec.model_validate(resource.get("spec") or {})
    except ValidationError as error:
        return _invalid(resource, _explain(error), now)
    view = build_view(snapshot, spec, now)
    rollout = roll_out(view)
    status = build_status(view, rollout, find_obstacle(view))
    return Plan(
        writes=rollout.writes,
        status=status,
        events=build_events(previous, status),
        requeue_after=rollout.requeue_after,
    )


def _invalid(resource: Json, message: str, now: datetime) -> Plan:
    """What serves goes on serving, untouched."""
    status = _invalid_status(resource, message, now)
    return Plan(writes=(), status=status, events=build_events(resource.get("status") or {}, status))


def _explain(error: ValidationError) -> str:
    """One line for each fault, with the field's path."""
    faults = [
        f"{'.'.join(['spec', *(str(part) for part in fault['loc'])])}: {fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return "; ".join(faults)


def _invalid_status(resource: Json, message: str, now: datetime) -> Json:
    """The last status, with what is wrong with the spec."""
    previous = resource.get("status") or {}
    generation = int(resource["metadata"].get("generation") or 0)
    faulty = [
        Condition(READY, "False", reasons.INVALID_SPEC, message),
        Condition(PROGRESSING, "False", reasons.INVALID_SPEC, message),
        Condition(DEGRADED, "True", reasons.INVALID_SPEC, message),
    ]
    replaced = {condition.type for condition in faulty}
    old = previous.get("conditions") or []
    kept = [condition for condition in old if condition.get("type") not in replaced]
    return {
        "replicas": 0,
        "readyReplicas": 0,
        "history": [],
        "summary": {"replicas": "0"},
        **previous,
        "observedGeneration": generation,
        "phase": "Degraded" if previous.get("activeRevision") else "Failed",
        "conditions": [*kept, *render_conditions(faulty, old, generation, now)],
    }
