"""What of the live gate's Job depends on more than one field, or must not depend on some."""

import pytest

from gemmaserve_operator.api.spec import LiveVerification
from gemmaserve_operator.desired.live_job import START_SECONDS, build_live_job


@pytest.fixture
def build(owner, make_verified):
    def make(spec=None, live=None, **changes):
        job = build_live_job(owner, make_verified(spec, **changes), LiveVerification(**(live or {})))
        pod = job["spec"]["template"]["spec"]
        return pod, pod["containers"][0]

    return make


def environment(container):
    return {variable["name"]: variable.get("value") for variable in container["env"]}


@pytest.mark.parametrize(
    ("engine", "key"),
    [
        ({}, None),
        ({"args": ["--api-key=k1"]}, "k1"),
        ({"args": ["--api_key", "k2"]}, "k2"),
        ({"args": ["--api-key"]}, None),
        ({"args": ["--api-key=a=b"]}, "a=b"),
        ({"env": [{"name": "VLLM_API_KEY", "value": "k3"}]}, "k3"),
        ({"args": ["--api-key=k1"], "env": [{"name": "VLLM_API_KEY", "value": "k3"}]}, "k1"),
    ],
)
def test_a_server_that_wants_a_key_gets_it(build, engine, key):
    _, container = build(engine=engine)
    assert environment(container).get("TOOLSTREAM_API_KEY") == key
    assert key is None or key not in container["command"]


def test_it_holds_no_secret_and_no_gpu(build, full):
    pod, container = build(full)
    assert "HF_TOKEN" not in environment(container)
    assert not any("gpu" in name for amounts in container["resources"].values() for name in amounts)
    assert pod["automountServiceAccountToken"] is False


def test_the_pod_ends_after_the_check_would_have(build):
    pod, container = build(live={"timeout_seconds": 40})
    assert pod["activeDeadlineSeconds"] == 40 + START_SECONDS
    command = container["command"]
    assert command[command.index("--max-seconds") + 1] == command[command.index("--timeout") + 1] == "40"
