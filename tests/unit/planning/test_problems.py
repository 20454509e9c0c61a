"""What the kubelet and the scheduler say, as reasons with a next step. The messages are Kubernetes' own."""

import pytest

from gemmaserve_operator.planning.problems import PodContext, find_problem

CONTEXT = PodContext(
    container="server", gpu_resource="nvidia.com/gpu", startup_timeout_seconds=600, stop_timeout_seconds=310
)
NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available."


def pod(name="p", created="2026-01-01T00:00:00Z", claims=(), **status):
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    metadata = {"name": name, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"volumes": volumes}, "status": status}


def waiting(reason, message="", **more):
    container = {"name": "server", "state": {"waiting": {"reason": reason, "message": message}}}
    return {"containerStatuses": [container | more]}


def unschedulable(message, reason="Unschedulable"):
    return {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]}


def ended(code=1, message="", seconds=5, reason="Error", **more):
    terminated = {
        "exitCode": code,
        "reason": reason,
        "message": message,
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z",
    }
    return waiting("CrashLoopBackOff", lastState={"terminated": terminated}, ready=False, **more)


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (waiting("ImagePullBackOff", 'Back-off pulling image "r/x"'), "ImagePullError", "Back-off pulling"),
        (waiting("ErrImageNeverPull", "not present with pull policy of Never"), "ImagePullError", "Never"),
        (waiting("InvalidImageName"), "ImagePullError", "InvalidImageName"),
        (waiting("CreateContainerConfigError", 'secret "hf-token" not found'), "SecretNotFound", "Secret hf-token"),
        (
            waiting("CreateContainerConfigError", "couldn't find key token in Secret team/hf-token"),
            "SecretNotFound",
            "Secret hf-token has no key token",
        ),
        (waiting("CreateContainerError", "no runtime"), "ContainerConfigError", "no runtime"),
        (
            unschedulable('0/1 nodes are available: persistentvolumeclaim "hf-cache" not found.'),
            "ClaimNotBound",
            "PersistentVolumeClaim hf-cache not found",
        ),
        (
            unschedulable("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
            "ClaimNotBound",
            "PersistentVolumeClaim cache or models is not bound",
        ),
        (unschedulable(NO_GPU), "InsufficientGPU", "Too few free nvidia.com/gpu"),
        (unschedulable("0/1 nodes are available: 1 Insufficient cpu."), "Unschedulable", "Insufficient cpu"),
        (ended(137, reason="OOMKilled"), "ContainerOOMKilled", "spec.resources.limits.memory"),
        (ended(137, seconds=605), "StartupTimeout", "spec.startupTimeoutSeconds"),
        (ended(1, "CUDA out of memory"), "CrashLoop", "CUDA out of memory"),
        (ended(2, ""), "CrashLoop", "exit code 2"),
        (ended(0, seconds=593), "StartupTimeout", "spec.startupTimeoutSeconds"),
        (ended(0, "goodbye", seconds=589), "CrashLoop", "exit code 0"),
        (ended(1, "after hours", seconds=611 + 310), "CrashLoop", "after hours"),
    ],
)
def test_each_problem(status, reason, words):
    problem = find_problem([pod(claims=("cache", "models"), **status)], CONTEXT)
    assert problem.reason == reason
    assert words in problem.message


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"phase": "Running"},
        waiting("ContainerCreating"),
        waiting("PodInitializing"),
        unschedulable("gated", reason="SchedulingGated"),
        {"containerStatuses": [{"name": "sidecar", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
        {"containerStatuses": None, "conditions": None},
    ],
)
def test_no_problem(status):
    assert find_problem([pod(**status)], CONTEXT) is None


def test_a_container_that_is_ready_again_has_no_problem():
    status = ended(137, reason="OOMKilled")
    status["containerStatuses"][0] |= {"ready": True, "state": {"running": {}}}
    assert find_problem([pod(**status)], CONTEXT) is None


def test_a_container_that_runs_again_but_is_not_ready_has_one():
    status = ended(1, "bad argument")
    status["containerStatuses"][0] |= {"state": {"running": {}}}
    assert find_problem([pod(**status)], CONTEXT).reason == "CrashLoop"


def test_what_comes_first_is_told_first_and_of_the_oldest_pod():
    pods = [
        pod("young", "2026-01-01T00:00:09Z", **waiting("ErrImagePull", "young")),
        pod("old", "2026-01-01T00:00:01Z", **waiting("ErrImagePull", "old")),
        pod("oldest", "2026-01-01T00:00:00Z", **ended(1, "crashed")),
    ]
    problem = find_problem(pods, CONTEXT)
    assert problem.reason == "ImagePullError"
    assert problem.message.startswith("old")


def test_long_words_are_cut():
    assert len(find_problem([pod(**ended(1, "x" * 100_000))], CONTEXT).message) < 1000
