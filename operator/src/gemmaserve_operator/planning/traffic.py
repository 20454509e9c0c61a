"""Who receives traffic: the main Service's selector, and what its EndpointSlices really hold."""

from datetime import timedelta

from gemmaserve_operator.api import names
from gemmaserve_operator.api.times import parse_time
from gemmaserve_operator.desired.services import build_main_service
from gemmaserve_operator.planning.objects import dig, label, name_of
from gemmaserve_operator.planning.types import Json, Write
from gemmaserve_operator.planning.view import View
from gemmaserve_operator.planning.writes import ensure


def route_to(view: View, revision: str) -> tuple[Write, ...]:
    """The main Service selecting this revision."""
    service = build_main_service(view.owner, revision, view.spec.routing.service)
    return ensure(service, view.main_service, view.strangers)


def main_endpoints(view: View) -> list[Json]:
    """The endpoints of the main Service."""
    return _endpoints(view, names.main_service_name(view.owner.name))


def _endpoints(view: View, service: str) -> list[Json]:
    slices = [each for each in view.snapshot.endpoint_slices if label(each, names.LABEL_SERVICE_NAME) == service]
    return [endpoint for each in slices for endpoint in each.get("endpoints") or []]


def reachable_pods(view: View, revision: str) -> int:
    """How many endpoints of a revision's own Service are ready."""
    endpoints = _endpoints(view, names.revision_name(view.owner.name, revision))
    return sum(dig(endpoint, "conditions", "ready") is True for endpoint in endpoints)


def receives_traffic(view: View, revision: str) -> bool:
    """Whether any endpoint of the main Service, ready or not, is a pod of this revision."""
    pods = {name_of(pod) for pod in view.state(revision).pods}
    return any(dig(endpoint, "targetRef", "name") in pods for endpoint in main_endpoints(view))


def ready_endpoints(view: View) -> int:
    """How many endpoints of the main Service are ready pods of the active revision."""
    pods = {name_of(pod) for pod in view.state(view.active).pods} if view.active else set()
    return sum(
        1
        for endpoint in main_endpoints(view)
        if dig(endpoint, "targetRef", "name") in pods and dig(endpoint, "conditions", "ready") is True
    )


def is_confirmed(view: View) -> bool:
    """Whether the main Service's endpoints are pods of the active revision and of no other, and one is ready.

    With no replicas asked for there is nothing to be ready.
    """
    if view.active is None:
        return False
    pods = {name_of(pod) for pod in view.state(view.active).pods}
    if any(dig(endpoint, "targetRef", "name") not in pods for endpoint in main_endpoints(view)):
        return False
    return view.spec.replicas == 0 or ready_endpoints(view) > 0


def scale_down_wait(view: View) -> float:
    """Seconds until the revisions that traffic has left may go."""
    switched = parse_time(view.state(view.active).serving_since) if view.active else None
    if switched is None:
        return 0.0
    delay = timedelta(seconds=view.spec.rollout.scale_down_delay_seconds)
    return max(0.0, (switched + delay - view.now).total_seconds())
