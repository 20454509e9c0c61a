"""The client against a scripted HTTP server on loopback."""

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client as kubernetes

from gemmaserve_operator.cluster import client as module
from gemmaserve_operator.cluster.client import ATTEMPTS, SESSION, ApiError, Client, load_configuration
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, GEMMASERVE, JOB, LEASE, POD, SERVICE

from .fake_client import child


class Script:
    """Answers requests one after the other with a code, a body and maybe headers."""

    def __init__(self):
        self.answers = []
        self.requests = []
        self.waits = []
        self.observed = []

    async def handle(self, request):
        text = await request.text()
        self.requests.append((request.method, request.path_qs, dict(request.headers), json.loads(text or "null")))
        answer = self.answers.pop(0)
        code, body, *headers = answer
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=code, text=text, headers=headers[0] if headers else None)


@pytest.fixture
async def script():
    return Script()


@pytest.fixture
async def client(script):
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", script.handle)

    async def sleep(seconds):
        script.waits.append(seconds)

    async with TestServer(app) as server:
        script.server = server
        configuration = kubernetes.Configuration(host=str(server.make_url("")).rstrip("/"))
        configuration.api_key["BearerToken"] = "Bearer t0ken"
        configuration.client_session_kwargs = SESSION
        async with kubernetes.ApiClient(configuration) as api:
            yield Client(api, observe=lambda *seen: script.observed.append(seen[:2]), sleep=sleep)


async def test_apply_is_server_side_and_takes_over(script, client):
    script.answers = [(200, {"kind": "Job"})]
    assert await client.apply(JOB, child()) == {"kind": "Job"}
    ((method, path, headers, body),) = script.requests
    assert method == "PATCH"
    assert path == (
        "/apis/batch/v1/namespaces/team/jobs/gemma4-x-gate"
        "?fieldManager=gemmaserve-operator&force=true&fieldValidation=Strict"
    )
    assert headers["Content-Type"] == "application/apply-patch+yaml"
    assert headers["Authorization"] == "Bearer t0ken"
    assert body == child()
    assert script.observed == [("apply", 200)]


@pytest.mark.parametrize(
    ("kind", "where", "path"),
    [
        (SERVICE, ("team", "a"), "/api/v1/namespaces/team/services/a"),
        (DEPLOYMENT, ("team",), "/apis/apps/v1/namespaces/team/deployments"),
        (GEMMASERVE, ("team", "a", "status"), "/apis/gemmaserve.dev/v1alpha1/namespaces/team/gemmaserves/a/status"),
        (POD, (None,), "/api/v1/pods"),
    ],
)
def test_paths(kind, where, path):
    assert kind.path(*where) == path


async def test_deletes_one_uid_and_what_it_owns_in_the_background(script, client):
    script.answers = [(200, {"kind": "Status"})]
    await client.delete(JOB, "team", "a", "u1")
    assert script.requests[0][3] == {"propagationPolicy": "Background", "preconditions": {"uid": "u1"}}


def _item(name):
    return {"metadata": {"name": name, "managedFields": [{"manager": "somebody"}]}}


async def test_lists_page_by_page(script, client):
    script.answers = [
        (200, {"metadata": {"resourceVersion": "7", "continue": "next"}, "items": [_item(1), _item(2)]}),
        (200, {"metadata": {"resourceVersion": "7"}, "items": [_item(3)]}),
    ]
    listing = await client.list_all(POD, None)
    assert (listing.items, listing.resource_version) == ([{"metadata": {"name": n}} for n in (1, 2, 3)], 7)
    assert (
        "labelSelector=gemmaserve.dev%2Fname" in script.requests[0][1] or "gemmaserve.dev/name" in script.requests[0][1]
    )
    assert "continue=next" in script.requests[1][1]


async def test_a_list_that_took_too_long_begins_again(script, client):
    gone = {"message": "too old", "reason": "Expired"}
    script.answers = [
        (200, {"metadata": {"resourceVersion": "7", "continue": "next"}, "items": [_item(1)]}),
        (410, gone),
        (200, {"metadata": {"resourceVersion": "9"}, "items": [_item(2)]}),
    ]
    assert (await client.list_all(POD, "team")).items == [{"metadata": {"name": 2}}]


@pytest.mark.parametrize("trouble", [500, 502, 503, 504, 429])
async def test_what_may_pass_is_tried_again(script, client, trouble):
    script.answers = [(trouble, "no"), (trouble, "no"), (200, {"ok": True})]
    assert await client.get(POD, "team", "a") == {"ok": True}
    assert len(script.waits) == 2
    assert 0 < script.waits[0] <= 0.2
    assert 0.2 <= script.waits[1] <= 0.4


async def test_but_not_for_ever(script, client):
    script.answers = [(503, "no")] * ATTEMPTS
    with pytest.raises(ApiError) as caught:
        await client.get(POD, "team", "a")
    assert caught.value.code == 503
    assert len(script.waits) == ATTEMPTS - 1
    assert script.observed == [("get", 503)] * ATTEMPTS


async def test_the_server_says_how_long_to_wait(script, client):
    script.answers = [(429, {"message": "slowly", "reason": "TooManyRequests"}, {"Retry-After": "3"}), (200, {})]
    await client.get(POD, "team", "a")
    assert script.waits == [3.0]


async def test_refusals_are_not_repeated(script, client):
    script.answers = [(422, {"message": "spec.x is wrong", "reason": "Invalid"})]
    with pytest.raises(ApiError) as caught:
        await client.create(JOB, child())
    error = caught.value
    assert (error.code, error.message, error.reason, error.passing) == (422, "spec.x is wrong", "Invalid", False)
    assert script.waits == []


@pytest.mark.parametrize("nonsense", ["<html>Please log in</html>", '{"kind":"Jo', "[]", ""])
async def test_success_that_is_no_object_is_no_answer(script, client, nonsense):
    """A proxy on the way has made it, or cut it off."""
    script.answers = [(200, nonsense), (200, {"ok": True})]
    assert await client.get(POD, "team", "a") == {"ok": True}
    assert len(script.waits) == 1


async def test_no_answer_at_all(script, client):
    await script.server.close()
    with pytest.raises(ApiError) as caught:
        await client.get(POD, "team", "a")
    assert caught.value.code == 0
    assert caught.value.passing
    assert script.observed == [("get", 0)] * ATTEMPTS


async def test_silence_is_cut_off(script, client, monkeypatch):
    monkeypatch.setattr(module, "REQUEST_TIMEOUT", 0.05)
    monkeypatch.setattr(module, "ATTEMPTS", 1)

    async def handle(_):
        await asyncio.sleep(5)

    script.handle = handle
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    async with TestServer(app) as server:
        configuration = kubernetes.Configuration(host=str(server.make_url("")).rstrip("/"))
        async with kubernetes.ApiClient(configuration) as api:
            with pytest.raises(ApiError, match="cannot be reached"):
                await Client(api).get(POD, "team", "a")


async def test_no_cluster_is_said_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(ApiError, match="set KUBECONFIG, or run inside a cluster"):
        await load_configuration()


@pytest.fixture
def kubeconfig(tmp_path, monkeypatch):
    cluster = {"name": "c", "cluster": {"server": "https://api.example:6443"}}
    contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
    config = {"clusters": [cluster], "contexts": contexts, "users": [{"name": "u", "user": {}}], "current-context": "c"}
    (tmp_path / "config").write_text(json.dumps({"apiVersion": "v1", "kind": "Config"} | config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    for variable in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    return cluster["cluster"]["server"]


async def test_the_environments_proxy_is_used(kubeconfig, monkeypatch):
    assert (await load_configuration()).proxy is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    configuration = await load_configuration()
    assert (configuration.host, configuration.proxy) == (kubeconfig, "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.example")
    assert (await load_configuration()).proxy is None


async def test_a_netrc_is_not_read(script, client, monkeypatch, tmp_path):
    """It would take the place of our own credentials, and a thread and a file for each request."""
    host = script.server.host
    (tmp_path / "netrc").write_text(f"machine {host} login somebody password else")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    script.answers = [(200, {})]
    await client.get(POD, "team", "a")
    assert script.requests[0][2]["Authorization"] == "Bearer t0ken"


def test_leases_and_children_know_their_group():
    assert (LEASE.group, LEASE.version) == ("coordination.k8s.io", "v1")
    assert (SERVICE.group, SERVICE.version) == ("", "v1")
