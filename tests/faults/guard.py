"""Watches that nothing unverified is served and nothing that serves is dropped, at the API server itself."""

import threading
import time

import httpx
from tests.contract.kube import Kube

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, ENDPOINT_SLICE, POD, SERVICE

_PERIOD = 0.2


class Guard:
    """Looks at a namespace five times a second until stopped; `complaints` says what it has seen.

    Args:
        kube: To look with, past the proxy.
        namespace: To look at.
        bad: Images whose gate fails: no serving pod may ever be made of one.
    """

    def __init__(self, kube: Kube, namespace: str, bad: set[str]):
        self._kube = kube
        self._namespace = namespace
        self._bad = bad
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="guard", daemon=True)
        self._served: set[str] = set()
        self.complaints: list[str] = []
        self.looks = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)

    def _run(self):
        while not self._stop.wait(_PERIOD):
            try:
                self._look()
            except httpx.HTTPError:
                # The API server itself is away.
                time.sleep(_PERIOD)
            else:
                self.looks += 1

    def _look(self):
        services = {s["metadata"]["name"]: s for s in self._kube.list(SERVICE, self._namespace, names.LABEL_NAME)}
        deployments = {d["metadata"]["name"]: d for d in self._kube.list(DEPLOYMENT, self._namespace)}
        for name, service in services.items():
            revision = (service["spec"].get("selector") or {}).get(names.LABEL_REVISION)
            if service["metadata"]["labels"].get(names.LABEL_COMPONENT) == names.COMPONENT_ENDPOINT:
                self._judge(name, deployments.get(f"{name}-{revision}"))
        for pod in self._kube.list(POD, self._namespace, f"{names.LABEL_COMPONENT}={names.COMPONENT_SERVER}"):
            if pod["spec"]["containers"][0]["image"] in self._bad:
                self.complaints.append(f"pod {pod['metadata']['name']} of an image whose gate fails")
        self._look_at_endpoints()

    def _judge(self, service, deployment):
        if deployment is None:
            self.complaints.append(f"Service {service} selects a revision that has no Deployment")
        elif names.ANNOTATION_VERIFICATION not in deployment["metadata"].get("annotations", {}):
            self.complaints.append(f"Service {service} selects a Deployment without a verification")

    def _look_at_endpoints(self):
        ready = set()
        for each in self._kube.list(ENDPOINT_SLICE, self._namespace):
            name = each["metadata"]["labels"].get(names.LABEL_SERVICE_NAME, "")
            if any(endpoint["conditions"].get("ready") for endpoint in each.get("endpoints") or []):
                ready.add(name)
        main = {name for name in ready if name in ("good", "bad", "fresh")}
        gone = self._served - main
        if gone:
            self.complaints.append(f"{', '.join(sorted(gone))}: nothing behind a Service that had served")
        self._served |= main
