"""The demo's road on a real node with a real vLLM: gate first, then pods, then traffic, then whole tool calls."""

import json
import subprocess
import sys
from collections.abc import Callable

import openai
import pytest

from localcluster import Cluster
from localcluster.demo import road, stream
from localcluster.demo.watch import Json, Look, Watch
from localcluster.images.build import PushedImage, push_image
from localcluster.images.shell import CommandError

ROLLOUT_TIMEOUT = 1200
WatchOf = Callable[[str], Watch]


def strict_stream(url: str) -> list[openai.types.chat.chat_completion_chunk.ChoiceDeltaToolCall]:
    """The tool-call deltas of one streamed answer, as the openai client hands them out."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", timeout=60)
    return [
        delta
        for chunk in client.chat.completions.create(**stream.build_request("gemma-4"))
        for choice in chunk.choices
        for delta in choice.delta.tool_calls or []
    ]


def assert_three_whole_calls(url: str) -> None:
    deltas = strict_stream(url)
    assert [delta.index for delta in deltas] == [0, 1, 2]
    assert all(delta.id and delta.type == "function" for delta in deltas)
    assert len({delta.id for delta in deltas}) == 3
    assert [(delta.function.name, json.loads(delta.function.arguments)) for delta in deltas if delta.function] == [
        (call.name, call.arguments) for call in stream.CALLS
    ]


def test_no_endpoint_before_the_gate_has_passed(watch: Watch) -> None:
    seconds = dict(road.order_of_events(watch))
    assert None not in seconds.values(), seconds
    assert list(seconds.values()) == sorted(seconds.values())
    before = [look for look in watch.looks if not look.gate_passed]
    assert len(before) > 1, "the watch must have seen the time before the verdict"
    assert not any(look.of_kind("EndpointSlice") or look.of_kind("Deployment") for look in before)


def test_no_endpoint_before_the_live_gate_has_passed(watch: Watch) -> None:
    before = [look for look in watch.looks if not look.live_gate_passed]
    assert any(look.of_kind("Deployment") for look in before), "the watch must have seen pods before that verdict"
    assert not any(look.endpoints(watch.name) for look in before)
    condition = watch.looks[-1].condition("LiveVerified")
    assert (condition["status"], condition["reason"]) == ("True", "LiveCheckPassed")
    record = watch.looks[-1].resource["status"]["activeRevision"]["verification"]["live"]
    assert record["passed"] > 0
    assert record["failed"] == 0


def test_status_tells_it_at_a_glance(cluster: Cluster, watch: Watch) -> None:
    record = watch.looks[-1].resource["status"]["activeRevision"]["verification"]["parser"]
    assert record["failed"] == 0
    assert record["passed"] == record["total"] > 0
    header, row = cluster.kubectl("get", "gs", watch.name).splitlines()
    columns = dict(zip(header.split(), row.split(), strict=False))
    assert columns["READY"] == "True"
    assert f"{record['total']}/{record['total']}" in row
    assert "Serving" in row


def test_three_calls_stream_whole_through_the_service(cluster: Cluster, watch: Watch) -> None:
    assert_three_whole_calls(road.reach(cluster, watch.name))


def test_the_demo_s_client_prints_a_verdict(cluster: Cluster, watch: Watch) -> None:
    url = road.reach(cluster, watch.name)
    client = [sys.executable, "-m", "localcluster.demo.stream", "--url", url, "--model", "gemma-4"]
    done = subprocess.run(client, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "three whole tool calls, each in one chunk" in done.stdout


def test_upstream_s_parser_never_gets_traffic(cluster: Cluster, watch: Watch, serving_image: PushedImage) -> None:
    registry = cluster.registry
    assert registry is not None
    with pytest.raises(CommandError) as refused:
        push_image("demo", registry, parser="upstream")
    assert "every_chunk_carries_the_required_strict_fields" in str(refused.value)

    forced = push_image("demo", registry, parser="upstream", skip_smoke=True)
    road.apply(cluster, road.read_example(forced))
    old = watch.looks[-1].resource["status"]["activeRevision"]["name"]

    def failed(look: Look) -> bool:
        assert not endpoints_of_others(look, watch.name, old)
        return look.condition("ParserVerified").get("status") == "False"

    look = watch.until(failed, "the gate to fail", ROLLOUT_TIMEOUT)
    condition = look.condition("ParserVerified")
    assert condition["reason"] == "ParserRegressionsFailed"
    assert "every_chunk_carries_the_required_strict_fields" in condition["message"]
    assert look.condition("Available")["status"] == "True"
    assert look.condition("Ready")["status"] == "False"
    assert look.resource["status"]["activeRevision"]["name"] == old
    assert [
        job for job in look.of_kind("Deployment") if job["metadata"]["labels"]["gemmaserve.dev/revision"] != old
    ] == []
    assert_three_whole_calls(road.reach(cluster, watch.name))

    # Going back to what serves deletes the candidate and nothing else.
    road.apply(cluster, road.read_example(serving_image))
    watch.until(lambda look: look.ready, "the old spec to be Ready again", 60)
    assert watch.looks[-1].resource["status"]["activeRevision"]["name"] == old


def test_behind_a_deceived_gate_upstream_s_parser_is_held_by_the_live_gate(
    cluster: Cluster, watch: Watch, serving_image: PushedImage
) -> None:
    assert cluster.registry is not None
    road.apply(cluster, road.read_example(push_image("demo", cluster.registry, parser="upstream", skip_smoke=True)))
    old = watch.looks[-1].resource["status"]["activeRevision"]["name"]
    look = watch.until(lambda look: look.condition("ParserVerified").get("status") == "False", "the gate to fail", 300)
    candidate = look.resource["status"]["candidateRevision"]["name"]
    gate = f"{watch.name}-{candidate}-gate"
    record = {"parser": "gemma4_atomic", "passed": 1, "failed": 0, "total": 1}
    cluster.kubectl("annotate", "job", gate, "--overwrite", f"gemmaserve.dev/verification={json.dumps(record)}")

    def held(look: Look) -> bool:
        assert not endpoints_of_others(look, watch.name, old)
        return look.condition("LiveVerified").get("status") == "False"

    look = watch.until(held, "the live gate to fail", ROLLOUT_TIMEOUT)
    assert look.condition("ParserVerified")["status"] == "True"
    assert look.condition("LiveVerified")["reason"] == "LiveCheckFailed"
    assert "one-delta-per-call" in look.condition("LiveVerified")["message"]
    failures = look.resource["status"]["candidateRevision"]["verification"]["live"]["failures"]
    assert "one-delta-per-call" in [failure["name"] for failure in failures]
    watch.until(lambda look: held(look) and not pods_of(look, candidate), "the held revision's pods to go", 120)
    assert_three_whole_calls(road.reach(cluster, watch.name))

    cluster.kubectl("delete", "job", gate)
    road.apply(cluster, road.read_example(serving_image))
    watch.until(lambda look: look.ready, "the old spec to be Ready again", 60)
    assert watch.looks[-1].resource["status"]["activeRevision"]["name"] == old


def pods_of(look: Look, revision: str) -> list[Json]:
    """Serving pods of a revision, those that are told to stop too."""
    wanted = {"app.kubernetes.io/component": "server", "gemmaserve.dev/revision": revision}
    return [pod for pod in look.of_kind("Pod") if wanted.items() <= pod["metadata"]["labels"].items()]


def endpoints_of_others(look: Look, service: str, revision: str) -> list[str]:
    """Addresses behind the Service that are not pods of this revision."""
    pods = {
        pod["status"].get("podIP")
        for pod in look.of_kind("Pod")
        if pod["metadata"]["labels"].get("gemmaserve.dev/revision") == revision
    }
    return [address for address in look.endpoints(service) if address not in pods]


def test_a_first_revision_with_upstream_s_parser_gets_no_pod(cluster: Cluster, watch_of: WatchOf) -> None:
    assert cluster.registry is not None
    resource = road.read_example(push_image("demo", cluster.registry, parser="upstream", skip_smoke=True))
    resource["metadata"]["name"] = "upstream"
    road.apply(cluster, resource)
    watch = watch_of("upstream")
    look = watch.until(lambda look: look.resource.get("status", {}).get("phase") == "Failed", "the gate to fail", 300)
    assert look.condition("Ready")["reason"] == "ParserRegressionsFailed"
    for kind in ("Deployment", "Service", "EndpointSlice"):
        assert not any(look.of_kind(kind) for look in watch.looks), kind
    cluster.kubectl("delete", "gemmaserve", "upstream", "--wait=true")


def test_a_missing_secret_is_named(cluster: Cluster, serving_image: PushedImage, watch_of: WatchOf) -> None:
    resource = road.read_example(serving_image)
    resource["metadata"]["name"] = "lacks-secret"
    resource["spec"]["model"]["tokenSecretRef"] = {"name": "no-such-token", "key": "token"}
    road.apply(cluster, resource)
    watch = watch_of("lacks-secret")
    look = watch.until(
        lambda look: look.condition("Ready").get("reason") == "SecretNotFound", "the missing Secret to be named", 120
    )
    assert "no-such-token" in look.condition("Ready")["message"]
    assert not look.endpoints("lacks-secret")
    cluster.kubectl("delete", "gemmaserve", "lacks-secret", "--wait=true")
