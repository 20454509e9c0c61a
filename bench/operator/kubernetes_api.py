"""What bench/operator knows of a cluster: a plain client, counters fed by watches, and the objects it makes."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
import time
from collections import defaultdict

import aiohttp
import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision, VerifiedRevision
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, GEMMASERVE, JOB, SERVICE, Kind
from gemmaserve_operator.desired.common import Owner
from gemmaserve_operator.desired.deployment import build_deployment
from gemmaserve_operator.desired.gate_job import build_gate_job
from gemmaserve_operator.desired.services import build_main_service, build_revision_service

CHILDREN = (JOB, DEPLOYMENT, SERVICE)
NAMESPACE, NODE = Kind("v1", "Namespace", "namespaces"), Kind("v1", "Node", "nodes")
KINDS = {kind.kind: kind for kind in (*CHILDREN, GEMMASERVE, NAMESPACE, NODE)}
NODES = 20
AT_ONCE = 32
"""Creations under way at a time."""
QUIET_SECONDS = 3.0
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_WRITES = ("apply", "patch", "create", "update", "delete")


class Api:
    """The API server as its admin, and the operator's metrics."""

    def __init__(self, kubeconfig):
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server = cluster["server"]
        self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pem:
            for part in ("client-certificate-data", "client-key-data"):
                pem.write(base64.b64decode(user[part]) + b"\n")
            pem.flush()
            self._tls.load_cert_chain(pem.name)

    async def __aenter__(self):
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        self.session = aiohttp.ClientSession(
            base_url=self._server, connector=connector, timeout=aiohttp.ClientTimeout(total=None), read_bufsize=2**22
        )
        return self

    async def __aexit__(self, *_):
        await self.session.close()

    async def create_all(self, bodies):
        """Create objects, many at a time, in their order."""
        waiting = iter(bodies)

        async def work():
            for body in waiting:
                path = KINDS[body["kind"]].path(body["metadata"].get("namespace"))
                async with self.session.post(path, json=body) as answer:
                    if answer.status >= 300:
                        raise SystemExit(f"{body['kind']} {body['metadata']['name']}: {await answer.text()}")

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def create_namespace(self, name):
        await self.create_all([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])

    async def remove_namespace(self, name):
        await self.delete(NAMESPACE, None, name)
        while True:
            async with self.session.get(NAMESPACE.path(None, name)) as answer:
                if answer.status == 404:
                    return
            await asyncio.sleep(0.5)

    async def delete(self, kind, namespace, name):
        body = {"propagationPolicy": "Background"}
        async with self.session.delete(kind.path(namespace, name), json=body) as answer:
            answer.raise_for_status()

    async def operator_metrics(self, port):
        """Reconciles, requests by verb and the queue's depth; None while the operator does not answer."""
        try:
            async with self.session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                text = await answer.text()
        except aiohttp.ClientError:
            return None
        found = {"reconciles": 0.0, "depth": 0.0, "writes": 0.0}
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith("gemmaserve_operator_reconcile_duration_seconds_count"):
                found["reconciles"] += float(value)
            elif name == "gemmaserve_operator_queue_depth":
                found["depth"] = float(value)
            elif name.startswith("gemmaserve_operator_api_requests_total") and any(
                f'verb="{verb}"' in name for verb in _WRITES
            ):
                found["writes"] += float(value)
        return found

    async def operator_writes(self, port):
        return int((await self.operator_metrics(port))["writes"])


class Counter:
    """What a namespace holds, as watches tell it."""

    KINDS = (*CHILDREN, GEMMASERVE)

    def __init__(self, namespace):
        self._namespace = namespace
        self._held = {kind: {} for kind in self.KINDS}
        self._awaited = defaultdict(list)
        self._last_change = time.monotonic()
        self.begun = {kind: asyncio.Event() for kind in self.KINDS}
        self.changes = 0

    async def follow(self, api, kind):
        """Watch one kind until cancelled. Services only by their metadata: nothing else of them is looked at.

        The API server drops a watcher that falls behind, which one on two busy processors does: a new watch begins with
        all that there is.
        """
        headers = {"Accept": _METADATA} if kind == SERVICE else {}
        query = {"watch": "true", "timeoutSeconds": "3600"}
        while True:
            async with api.session.get(kind.path(self._namespace), params=query, headers=headers) as answer:
                self.begun[kind].set()
                async for line in answer.content:
                    event = json.loads(line)
                    if event["type"] != "ERROR":
                        self._take(kind, event["type"], event["object"])

    def _take(self, kind, change, obj):
        name = obj["metadata"]["name"]
        self.changes, self._last_change = self.changes + 1, time.monotonic()
        if change == "DELETED":
            self._held[kind].pop(name, None)
            return
        self._held[kind][name] = _is_well(kind, obj)
        if change == "ADDED":
            for waiting in self._awaited.pop((kind, name), []):
                waiting.set_result(time.monotonic())

    def names(self, kind):
        return self._held[kind].keys()

    def next_added(self, kind, name):
        """The moment at which the object of this name is added the next time."""
        future = asyncio.get_running_loop().create_future()
        self._awaited[kind, name].append(future)
        return future

    def children_of_all(self, number):
        held = self._held
        return len(held[JOB]) >= number and len(held[DEPLOYMENT]) >= number and len(held[SERVICE]) >= 2 * number

    def all_run(self, number):
        return all(sum(self._held[kind].values()) >= number for kind in (JOB, DEPLOYMENT))

    def all_ready(self, number):
        return sum(self._held[GEMMASERVE].values()) >= number

    def is_quiet(self):
        return time.monotonic() - self._last_change > QUIET_SECONDS


def _is_well(kind, obj):
    """Deployment and Job as their controllers say, GemmaServe by its condition for the present spec."""
    status = obj.get("status") or {}
    if kind == DEPLOYMENT:
        return status.get("readyReplicas", 0) >= 1
    if kind == JOB:
        return status.get("succeeded", 0) >= 1
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions") or []
    )


def _spec(index, live):
    return {
        "model": {"uri": "hf://google/gemma-4-31b-it"},
        "image": {"repository": "registry.example/gemmaserve-vllm", "digest": f"sha256:{index:064x}"},
        "verification": {"live": {"enabled": live}},
    }


def gemmaserve(namespace, index, live):
    metadata = {"name": f"gemma-{index:04}", "namespace": namespace}
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": _spec(index, live)}


def bare_objects(namespace, number):
    """What the operator makes for so many GemmaServes, with no owner."""
    for index in range(number):
        spec = GemmaServeSpec.model_validate(_spec(index, False))
        revision = Revision.of(spec)
        owner = Owner(name=f"gemma-{index:04}", namespace=namespace, uid="00000000-0000-0000-0000-000000000000")
        verified = VerifiedRevision(revision, spec.image.digest, "{}")
        built = (
            build_gate_job(owner, revision, timeout_seconds=600),
            build_deployment(owner, verified, replicas=1, progress_deadline_seconds=3600),
            build_revision_service(owner, verified),
            build_main_service(owner, revision.name, spec.routing.service),
        )
        for body in built:
            body["metadata"].pop("ownerReferences")
            yield body


def nodes():
    room = {"cpu": "10000", "memory": "100Ti", "pods": "10000", "nvidia.com/gpu": "10000", "ephemeral-storage": "100Ti"}
    for index in range(NODES):
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"kwok-{index}"},
            "status": {"capacity": room, "allocatable": room},
        }
