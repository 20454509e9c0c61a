"""The operator dies after each single write of the first rollout; started again, it ends in the same state."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, ENDPOINT_SLICE, JOB, POD, SERVICE

from .crashing_operator import KILLED
from .kube import Resource, eventually

pytestmark = pytest.mark.timeout(900)

AT_ONCE = 4
MAX_WRITES = 40
"""A road of more writes than this is taken for one without an end."""

_GIVEN = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace", "selfLink"}
"""Metadata that the API server gives each object anew."""
_TIMES = {
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "startTime",
    "completionTime",
    "createdAt",
    "startedAt",
    "finishedAt",
    "endpoints.kubernetes.io/last-change-trigger-time",
    names.ANNOTATION_SERVING_SINCE,
}
_PLACES = {"clusterIP", "clusterIPs", "podIP", "podIPs", "addresses", "observedGeneration"}
_RANDOM_NAME = re.compile(r"(gemma4-[0-9a-f]{10}(?:-gate|-live|-[0-9a-z]+)?|gemma4)-[0-9a-z]{5}$")


def _normalised(value):
    """Without what differs between two clusters in which the same has happened: times, uids, addresses."""
    if isinstance(value, dict):
        return {
            key: _normalised(item)
            for key, item in value.items()
            if key not in _GIVEN | _TIMES | _PLACES and not key.endswith("controller-uid")
        }
    if isinstance(value, list):
        return [_normalised(item) for item in value]
    return _RANDOM_NAME.sub(r"\1-*", value) if isinstance(value, str) else value


def _end_state(resource: Resource):
    kinds = (JOB, DEPLOYMENT, SERVICE, ENDPOINT_SLICE, POD)
    state = {kind.kind: sorted((_normalised(obj) for obj in resource.of(kind)), key=str) for kind in kinds}
    state |= {"status": _normalised(resource.status), "endpoints": len(resource.endpoints())}
    # It stands in URLs too.
    return json.loads(json.dumps(state).replace(resource.namespace, "NAMESPACE"))


def _has_settled(resource: Resource) -> bool:
    """Whether the Job's controller, which the road does not wait for, has counted the gate's pod."""
    ended = ((job.get("status") or {}).get("conditions") or [] for job in resource.of(JOB))
    counted = not any(pod["metadata"].get("finalizers") for pod in resource.of(POD))
    return counted and all(any(c["type"] == "Complete" for c in conditions) for conditions in ended)


def _crash(kube, start_operator, namespace, writes) -> int | None:
    """The exit code of an operator that dies after so many writes; None when the road ended before."""
    resource = Resource(kube, namespace).create()
    with start_operator(f"--namespaces={namespace}", crash_after=writes) as dying:
        eventually(
            lambda: dying.exit_code is not None or resource.ready,
            f"death after write {writes}",
            120,
            show=dying.log.read_text,
        )
        assert dying.exit_code in (KILLED, None), dying.log.read_text()
        return dying.exit_code


@pytest.fixture
def broken(kube, kubelet, start_operator, new_namespace):
    """Namespaces in which the operator has died: after the first write, after the second, up to the last."""
    namespaces = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, MAX_WRITES, AT_ONCE):
            fresh = [new_namespace("broken") for _ in range(AT_ONCE)]
            counts = range(first, first + AT_ONCE)
            exit_codes = list(pool.map(partial(_crash, kube, start_operator), fresh, counts))
            namespaces += fresh
            if None in exit_codes:
                # Two gates' Jobs and their verdicts, the Deployment and two Services, and what the former record on the
                # latter: at least these were each the last once.
                assert first + exit_codes.index(None) > 9
                return namespaces
    pytest.fail(f"the road has no end after {MAX_WRITES} writes")


def test_every_write_may_be_the_last(kube, broken, start_operator, new_namespace):
    reference = Resource(kube, new_namespace("whole")).create()
    with start_operator(f"--namespaces={reference.namespace}"):
        reference.until_ready()
        eventually(lambda: _has_settled(reference), "the reference's gate Job is complete")
    expected = _end_state(reference)
    with start_operator(f"--namespaces={','.join(broken)}") as operator:
        for namespace in broken:
            resource = Resource(kube, namespace).until_ready(240)
            eventually(
                lambda resource=resource: _end_state(resource) == expected,
                f"{namespace} ends as if nothing had happened",
                show=lambda resource=resource: _difference(expected, _end_state(resource)),
            )
        assert operator.exit_code is None


def _difference(expected, found):
    return {key: (expected[key], found[key]) for key in expected if expected[key] != found[key]}
