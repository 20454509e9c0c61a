"""A few requests to the API server as its admin, without the code under test in between."""

import base64
import ssl
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import httpx
import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, ENDPOINT_SLICE, GEMMASERVE, JOB, POD, SERVICE, Kind

DIGEST = "sha256:" + "a" * 64
REPOSITORY = "registry.example/gemmaserve-vllm"
MERGE = {"Content-Type": "application/merge-patch+json"}
CHILDREN = (JOB, DEPLOYMENT, SERVICE)


class Kube:
    """Objects are dicts; what is not there is None; what fails raises httpx.HTTPStatusError."""

    def __init__(self, kubeconfig: Path):
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pem:
            for part in ("client-certificate-data", "client-key-data"):
                pem.write(base64.b64decode(user[part]) + b"\n")
            pem.flush()
            context.load_cert_chain(pem.name)
        self._connect = partial(httpx.Client, base_url=cluster["server"], verify=context, timeout=20)
        self._of_thread = threading.local()

    @property
    def _http(self) -> httpx.Client:
        if not hasattr(self._of_thread, "client"):
            self._of_thread.client = self._connect()
        return self._of_thread.client

    def get(self, kind: Kind, namespace: str | None, name: str):
        answer = self._http.get(kind.path(namespace, name))
        return None if answer.status_code == 404 else self._read(answer)

    def list(self, kind: Kind, namespace: str | None = None, selector: str = ""):
        answer = self._http.get(kind.path(namespace), params={"labelSelector": selector} if selector else {})
        return self._read(answer)["items"]

    def create(self, kind: Kind, body, *, subresource: str | None = None):
        metadata = body["metadata"]
        path = kind.path(metadata.get("namespace"), *((metadata["name"], subresource) if subresource else ()))
        return self._read(self._http.post(path, json=body))

    def patch(self, kind: Kind, namespace: str | None, name: str, change, *, subresource: str | None = None):
        path = kind.path(namespace, name, subresource)
        answer = self._http.patch(path, json=change, headers=MERGE)
        return None if answer.status_code == 404 else self._read(answer)

    def delete(self, kind: Kind, namespace: str | None, name: str, **options):
        answer = self._http.request("DELETE", kind.path(namespace, name), json=options)
        return None if answer.status_code == 404 else self._read(answer)

    @staticmethod
    def _read(answer: httpx.Response):
        answer.raise_for_status()
        return answer.json()


class Resource:
    """One GemmaServe in a namespace of its own, as a user sees it."""

    def __init__(self, kube: Kube, namespace: str, name: str = "gemma4"):
        self.kube = kube
        self.namespace = namespace
        self.name = name

    def create(self, **spec):
        base = {
            "model": {"uri": "hf://google/gemma-4-31b-it"},
            "image": {"repository": REPOSITORY, "digest": DIGEST},
            "rollout": {"scaleDownDelaySeconds": 0},
        }
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": base | spec,
        }
        self.kube.create(GEMMASERVE, body)
        return self

    def edit(self, **spec):
        self.kube.patch(GEMMASERVE, self.namespace, self.name, {"spec": spec})

    @property
    def object(self):
        return self.kube.get(GEMMASERVE, self.namespace, self.name)

    @property
    def status(self):
        return self.object.get("status") or {}

    @property
    def phase(self):
        return self.status.get("phase")

    def condition(self, kind):
        return next((c for c in self.status.get("conditions") or [] if c["type"] == kind), {})

    @property
    def ready(self):
        """Ready for the spec as it is now."""
        condition, generation = self.condition("Ready"), self.object["metadata"]["generation"]
        return condition.get("status") == "True" and condition.get("observedGeneration") == generation

    def of(self, kind: Kind):
        return self.kube.list(kind, self.namespace, f"{names.LABEL_NAME}={self.name}")

    def endpoints(self):
        """Names of the ready pods behind the Service that clients use."""
        slices = self.kube.list(ENDPOINT_SLICE, self.namespace, f"{names.LABEL_SERVICE_NAME}={self.name}")
        return [
            endpoint["targetRef"]["name"]
            for each in slices
            for endpoint in each.get("endpoints") or []
            if endpoint["conditions"].get("ready")
        ]

    def until_ready(self, timeout=60):
        eventually(lambda: self.ready, f"{self.namespace}/{self.name} is Ready", timeout, show=lambda: self.status)
        return self

    def events(self):
        listed = self.kube.list(Kind("events.k8s.io/v1", "Event", "events"), self.namespace)
        return [event for event in listed if event["regarding"]["kind"] == names.KIND]


def eventually(check, what: str, timeout: float = 30.0, *, show=None):
    """Wait until the check gives something true, and return that."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout:.0f} s: {what}" + (f"; instead: {show()}" if show else ""))


__all__ = ["CHILDREN", "DIGEST", "POD", "REPOSITORY", "Kube", "Resource", "eventually"]
