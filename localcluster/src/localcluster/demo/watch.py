"""What a GemmaServe and its children look like at one moment, in facts that a person (or a test) reads."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

KINDS = "pods,endpointslices,services,deployments,jobs,gemmaserves"
"""Kubectl lists kind after kind: consequences first, so that no look shows one without its cause."""
LABEL_NAME = "gemmaserve.dev/name"
ANNOTATION_VERIFICATION = "gemmaserve.dev/verification"
ANNOTATION_LIVE_VERIFICATION = "gemmaserve.dev/live-verification"
SECONDS_BETWEEN_LOOKS = 1.0


class RoadError(RuntimeError):
    """A step of the demo did not get where it must; the message says what was seen last and what to try."""


@dataclass(frozen=True, slots=True)
class Look:
    """All objects of one GemmaServe at one moment.

    Attributes:
        seconds: Since the first look.
        objects: As `kubectl get -o json` lists them.
    """

    seconds: float
    objects: list[Json]

    def of_kind(self, kind: str) -> list[Json]:
        """The objects of one kind, in the API server's order."""
        return [item for item in self.objects if item["kind"] == kind]

    @property
    def resource(self) -> Json:
        """The GemmaServe itself; an empty dict while there is none."""
        return next(iter(self.of_kind("GemmaServe")), {})

    def condition(self, type_: str) -> Json:
        """One condition of the GemmaServe; an empty dict while it is not set."""
        conditions = self.resource.get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == type_), {})

    @property
    def ready(self) -> bool:
        """Whether this generation is verified and receives the traffic."""
        condition = self.condition("Ready")
        generation = self.resource.get("metadata", {}).get("generation")
        return condition.get("status") == "True" and condition.get("observedGeneration") == generation

    @property
    def gate_passed(self) -> bool:
        """Whether a gate's Job bears the record of a passed verification; the status tells it a moment later."""
        return any(record["passed"] == record["total"] > 0 for record in self._records(ANNOTATION_VERIFICATION))

    @property
    def live_gate_passed(self) -> bool:
        """Whether a live gate's Job bears the record of answers in which no rule was broken."""
        records = self._records(ANNOTATION_LIVE_VERIFICATION)
        return any(record["passed"] > 0 and not record.get("failures") for record in records)

    def _records(self, annotation: str) -> list[Json]:
        found = (job["metadata"].get("annotations", {}).get(annotation) for job in self.of_kind("Job"))
        return [json.loads(text) for text in found if text]

    def endpoints(self, service: str) -> list[str]:
        """Addresses of the ready endpoints behind a Service."""
        return [
            address
            for piece in self.of_kind("EndpointSlice")
            if piece["metadata"]["labels"].get("kubernetes.io/service-name") == service
            for endpoint in piece.get("endpoints") or []
            if endpoint.get("conditions", {}).get("ready")
            for address in endpoint["addresses"]
        ]

    def facts(self) -> dict[str, str]:
        """One line an object, keyed by kind and name; only what a person waits for."""
        lines: dict[str, str] = {}
        for item in self.objects:
            text = _DESCRIBE[item["kind"]](item)
            if text:
                lines[f"{item['kind']} {item['metadata']['name']}"] = text
        return lines


def _describe_resource(item: Json) -> str:
    status = item.get("status", {})
    progressing: Json = next((c for c in status.get("conditions", []) if c["type"] == "Progressing"), {})
    return ": ".join(text for text in (status.get("phase"), progressing.get("message")) if text)


def _describe_job(item: Json) -> str:
    ended = [c["type"] for c in item.get("status", {}).get("conditions", []) if c["status"] == "True"]
    if "Complete" in ended:
        return "passed"
    return "failed" if "Failed" in ended else "running"


def _describe_deployment(item: Json) -> str:
    return f"{item.get('status', {}).get('readyReplicas', 0)} of {item['spec'].get('replicas', 1)} pods ready"


def _describe_service(item: Json) -> str:
    return f"selects revision {item['spec'].get('selector', {}).get('gemmaserve.dev/revision', 'none')}"


def _describe_slice(item: Json) -> str:
    addresses = [
        f"{address} {'ready' if endpoint.get('conditions', {}).get('ready') else 'not ready'}"
        for endpoint in item.get("endpoints") or []
        for address in endpoint["addresses"]
    ]
    return ", ".join(addresses) or "no endpoint"


def _describe_pod(item: Json) -> str:
    status = item.get("status", {})
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting")
        if waiting:
            return str(waiting.get("reason", "waiting"))
    if status.get("phase") == "Running":
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))
        return "ready" if ready else "running, not ready yet"
    return str(status.get("phase", ""))


_DESCRIBE: dict[str, Callable[[Json], str]] = {
    "GemmaServe": _describe_resource,
    "Job": _describe_job,
    "Deployment": _describe_deployment,
    "Service": _describe_service,
    "EndpointSlice": _describe_slice,
    "Pod": _describe_pod,
}


@dataclass
class Watch:
    """Looks at one GemmaServe again and again and keeps every look.

    Attributes:
        kubectl: Runs kubectl with the given arguments and returns its standard output.
        name: Of the GemmaServe.
        namespace: Of the GemmaServe.
        say: Gets each changed fact as (seconds, object, fact).
    """

    kubectl: Callable[..., str]
    name: str
    namespace: str = "default"
    say: Callable[[float, str, str], None] = lambda *_: None
    looks: list[Look] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def look(self) -> Look:
        """Look once, keep the look and report what changed since the last one."""
        listed = json.loads(self.kubectl("get", KINDS, "--namespace", self.namespace, "--output", "json"))
        mine = [
            item
            for item in reversed(listed["items"])
            if item["metadata"].get("labels", {}).get(LABEL_NAME) == self.name
            or (item["kind"] == "GemmaServe" and item["metadata"]["name"] == self.name)
        ]
        before = self.looks[-1].facts() if self.looks else {}
        look = Look(time.monotonic() - self._started, mine)
        self.looks.append(look)
        after = look.facts()
        for key, text in after.items():
            if before.get(key) != text:
                self.say(look.seconds, key, text)
        for key in before.keys() - after.keys():
            self.say(look.seconds, key, "gone")
        return look

    def until(self, done: Callable[[Look], bool], what: str, timeout: float) -> Look:
        """Look until `done` says so.

        Args:
            done: Judges each look.
            what: Named in the error, after "waited for".
            timeout: Seconds.

        Raises:
            RoadError: When the time is over; with the last facts.
        """
        for _ in self._clock(timeout):
            look = self.look()
            if done(look):
                return look
        facts = "\n".join(f"  {key}: {text}" for key, text in self.looks[-1].facts().items())
        raise RoadError(f"waited {timeout:.0f} s for {what}; seen last:\n{facts or '  nothing'}")

    @staticmethod
    def _clock(timeout: float) -> Iterator[None]:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            yield
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def first(self, holds: Callable[[Look], Any]) -> float | None:
        """Seconds of the first look for which something held; None if it never did."""
        return next((look.seconds for look in self.looks if holds(look)), None)
