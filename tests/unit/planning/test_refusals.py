"""The API server's own words (Kubernetes 1.37) as reasons with a next step."""

import pytest

from gemmaserve_operator.planning.refusals import explain_refusal

TERMINATING = "unable to create new content in namespace team because it is being terminated"
QUOTA = "exceeded quota: team, requested: count/jobs.batch=1, used: count/jobs.batch=0, limited: count/jobs.batch=0"
POLICY = "ValidatingAdmissionPolicy 'images' with binding 'images' denied request: only from registry.example"
SECURITY = 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
WEBHOOK_DOWN = 'Internal error occurred: failed calling webhook "w.example": failed to call webhook: connection refused'
IMMUTABLE = 'Deployment.apps "a" is invalid: spec.selector: Invalid value: {"matchLabels":{}}: field is immutable'


@pytest.mark.parametrize(
    ("words", "reason", "next_step"),
    [
        (f'jobs.batch "a" is forbidden: {TERMINATING}', "NamespaceTerminating", "another namespace"),
        (f'jobs.batch "a" is forbidden: {QUOTA}', "QuotaExceeded", "kubectl describe quota"),
        ('pods "a" is forbidden: failed quota: team: must specify limits.cpu', "QuotaExceeded", "ResourceQuota"),
        ('admission webhook "w.example" denied the request: not on Fridays', "AdmissionDenied", "webhook or policy"),
        (f'services "a" is forbidden: {POLICY}', "AdmissionDenied", "webhook or policy"),
        (f'pods "a" is forbidden: {SECURITY}', "AdmissionDenied", "webhook or policy"),
        (WEBHOOK_DOWN, "AdmissionDenied", "webhook or policy"),
        (IMMUTABLE, "ImmutableField", "delete it"),
        ("something else", "Otherwise", "something else"),
    ],
)
def test_each_refusal(words, reason, next_step):
    problem = explain_refusal("Job a", words, otherwise="Otherwise")
    assert problem.reason == reason
    assert problem.message.startswith(f"The API server refuses Job a: {words}")
    assert next_step in problem.message
