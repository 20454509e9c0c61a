"""A stand-in for scheduler, kubelet and containers, where there is no node: it writes the statuses of pods.

It binds every pod to one node that is only an object, says that containers run and are ready, and lets the containers
of both gates end with a report. What it says of containers is what a kubelet says (container runtime's words included).
"""

import copy
import hashlib
import json
import threading
import time
from datetime import UTC, datetime

import httpx

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import LEASE, POD, Kind

from .kube import Kube

NODE = "fake-node"
_NODES = Kind("v1", "Node", "nodes")
_SECRETS = Kind("v1", "Secret", "secrets")
_PERIOD = 0.1
_HEARTBEAT = 10.0


def passed_report():
    """What the regressions print when all have passed (the contract of the termination message)."""
    return {
        "parser": "gemma4_atomic",
        "parserVersion": "0.1.0",
        "vllmVersion": "0.32.0",
        "passed": 61,
        "failed": 0,
        "total": 61,
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:09Z",
        "failures": [],
    }


def passed_live_report():
    """What `toolstream check --gate` writes when no rule was broken."""
    return passed_report() | {"passed": 14, "failed": 0, "inconclusive": 2, "total": 16}


def failed_live_report(*rules):
    failures = [{"name": rule, "message": "chat stream auto one-call: what is wrong"} for rule in rules]
    return passed_live_report() | {"passed": 1, "failed": 13, "failures": failures}


def failed_report(*tests):
    failures = [{"name": name, "message": "2 calls instead of 3"} for name in tests]
    return passed_report() | {"passed": 61 - len(tests), "failed": len(tests), "failures": failures}


class FakeKubelet:
    """Works in a thread until stopped.

    Attributes:
        reports: What the gate says, by image; every other image passes. None: it never ends.
        live_reports: The same of the live gate.
    """

    def __init__(self, kube: Kube):
        self.reports = {}
        self.live_reports = {}
        self._kube = kube
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-kubelet", daemon=True)
        self._addresses = 0
        self._beat = 0.0

    def __enter__(self):
        self._kube.create(_NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self):
        while not self._stop.wait(_PERIOD):
            try:
                self._heartbeat()
                for pod in self._kube.list(POD, None, names.LABEL_NAME):
                    self._tend(pod)
            except httpx.HTTPError as error:
                # Pods change and go while they are looked at; the next round sees them as they are then.
                print(f"fake kubelet: {error}")

    def _heartbeat(self):
        """Keeps the controller manager from taking the node for lost."""
        if time.monotonic() - self._beat < _HEARTBEAT:
            return
        self._beat = time.monotonic()
        now = _now()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        self._kube.patch(_NODES, None, NODE, {"status": {"conditions": [ready]}}, subresource="status")
        spec = {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": now.replace("Z", ".000000Z")}
        if self._kube.patch(LEASE, "kube-node-lease", NODE, {"spec": spec}) is None:
            metadata = {"name": NODE, "namespace": "kube-node-lease"}
            body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
            self._kube.create(LEASE, body)

    def _tend(self, pod):
        metadata = pod["metadata"]
        where = metadata["namespace"], metadata["name"]
        if metadata.get("deletionTimestamp"):
            # The end first, as a kubelet does it: a Job keeps its finalizer on a pod that goes and has not ended.
            self._write(pod, self._ended_status(pod))
            self._kube.delete(POD, *where, gracePeriodSeconds=0)
        elif not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"namespace": where[0], "name": where[1]}}
            self._kube.create(POD, body | {"target": target}, subresource="binding")
        else:
            self._write(pod, self._status(pod))

    def _write(self, pod, status):
        metadata = pod["metadata"]
        if status is not None:
            self._kube.patch(POD, metadata["namespace"], metadata["name"], {"status": status}, subresource="status")

    def _status(self, pod):
        """The status to write; None when it is as it should be."""
        container = pod["spec"]["containers"][0]
        old = pod.get("status") or {}
        missing = self._missing_secret(pod["metadata"]["namespace"], container)
        if missing:
            words = f'secret "{missing}" not found'
            state = {"waiting": {"reason": "CreateContainerConfigError", "message": words}}
            done = _state_of(old).get("waiting") == state["waiting"]
            return None if done else self._build(old, container, state, phase="Pending", ready=False)
        if container["name"] == names.CONTAINER_GATE:
            return self._gate_status(old, container, self.reports.get(container["image"], passed_report()))
        if container["name"] == names.CONTAINER_LIVE:
            return self._gate_status(old, container, self.live_reports.get(container["image"], passed_live_report()))
        return self._running_status(old, container)

    def _running_status(self, old, container):
        if _state_of(old).get("running"):
            return None
        return self._build(old, container, {"running": {"startedAt": _now()}}, phase="Running", ready=True)

    def _ended_status(self, pod):
        """The status of a pod whose container heard SIGTERM; None when it had ended before."""
        old = pod.get("status") or {}
        if old.get("phase") in ("Succeeded", "Failed"):
            return None
        ended = {"exitCode": 143, "reason": "Error", "startedAt": _now(), "finishedAt": _now()}
        return self._build(old, pod["spec"]["containers"][0], {"terminated": ended}, phase="Failed", ready=False)

    def _gate_status(self, old, container, report):
        if _state_of(old).get("terminated"):
            return None
        if report is None:
            return self._running_status(old, container)
        code = 1 if report["failed"] else 0
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": json.dumps(report)}
        ended |= {"startedAt": _now(), "finishedAt": _now()}
        return self._build(old, container, {"terminated": ended}, phase="Failed" if code else "Succeeded", ready=False)

    def _build(self, old, container, state, *, phase, ready):
        address = old.get("podIP")
        if address is None:
            self._addresses += 1
            address = f"10.99.{self._addresses // 250}.{self._addresses % 250 + 1}"
        conditions = copy.deepcopy(
            [c for c in old.get("conditions") or [] if c["type"] not in ("Ready", "ContainersReady")]
        )
        for kind in ("ContainersReady", "Ready"):
            conditions.append({"type": kind, "status": "True" if ready else "False", "lastTransitionTime": _now()})
        return {
            "phase": phase,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": old.get("startTime") or _now(),
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": f"{repository_of(container['image'])}@{digest_of(container['image'])}",
                    "ready": ready,
                    "restartCount": 0,
                    "state": state,
                }
            ],
        }

    def _missing_secret(self, namespace, container):
        for variable in container.get("env") or []:
            reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if reference and self._kube.get(_SECRETS, namespace, reference["name"]) is None:
                return reference["name"]
        return None


def digest_of(image: str) -> str:
    """The digest that the registry has the image under."""
    return image.partition("@")[2] or "sha256:" + hashlib.sha256(image.encode()).hexdigest()


def repository_of(image: str) -> str:
    return image.partition("@")[0].rpartition(":")[0] or image.partition("@")[0]


def _state_of(status):
    statuses = status.get("containerStatuses") or [{}]
    return statuses[0].get("state") or {}


def _now():
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
