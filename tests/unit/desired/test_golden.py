"""Each builder's whole output, for the least and for the fullest spec.

A changed pod template restarts serving pods of every user unless TEMPLATE_VERSION is raised with it: hence the version
in the Deployment's file name.
"""

import pytest

from gemmaserve_operator.api.spec import LiveVerification, RoutingService
from gemmaserve_operator.desired.deployment import TEMPLATE_VERSION, build_deployment
from gemmaserve_operator.desired.gate_job import build_gate_job
from gemmaserve_operator.desired.live_job import build_live_job
from gemmaserve_operator.desired.revision_record import build_revision_record
from gemmaserve_operator.desired.services import build_main_service, build_revision_service


@pytest.mark.parametrize("kind", ["minimal", "full"])
def test_gate_job(owner, make_revision, check_golden, request, kind):
    revision = make_revision(request.getfixturevalue(kind))
    check_golden(f"gate-job-{kind}", build_gate_job(owner, revision, timeout_seconds=600))


@pytest.mark.parametrize("kind", ["minimal", "full"])
def test_live_job(owner, make_verified, check_golden, request, kind):
    live = LiveVerification(requests=32, concurrency=4, timeout_seconds=60) if kind == "full" else LiveVerification()
    check_golden(f"live-job-{kind}", build_live_job(owner, make_verified(request.getfixturevalue(kind)), live))


@pytest.mark.parametrize("kind", ["minimal", "full"])
def test_deployment(owner, make_verified, check_golden, request, kind):
    verified = make_verified(request.getfixturevalue(kind))
    built = build_deployment(owner, verified, replicas=2, progress_deadline_seconds=3600)
    check_golden(f"deployment-{kind}-template-v{TEMPLATE_VERSION}", built)


def test_main_service(owner, check_golden):
    routing = RoutingService(type="LoadBalancer", port=8080)
    check_golden("service-main", build_main_service(owner, "0123456789", routing))


def test_revision_service(owner, make_verified, check_golden):
    check_golden("service-revision", build_revision_service(owner, make_verified()))


@pytest.mark.parametrize("kind", ["minimal", "full"])
def test_revision_record(owner, make_verified, check_golden, request, kind):
    verified = make_verified(request.getfixturevalue(kind))
    check_golden(f"revision-record-{kind}", build_revision_record(owner, verified, left=1767225600))
