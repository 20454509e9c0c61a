"""`kubectl gemmaserve diagnose`: everything that helps to find out what is wrong, in one archive without secrets."""

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.planning.objects import dig, name_of
from gemmaserve_operator.plugin.kubectl import Json, Kubectl, KubectlError
from gemmaserve_operator.plugin.redaction import redact, redact_text, secrets_in

_CHILDREN: Final = (
    "deployments.apps,replicasets.apps,jobs.batch,services,pods,endpointslices.discovery.k8s.io,"
    "controllerrevisions.apps"
)
_SURROUNDINGS: Final = "persistentvolumeclaims,resourcequotas,limitranges"
_LOG_LIMITS: Final = ("--timestamps", "--tail=5000", "--limit-bytes=2000000")
_OPERATOR: Final = "app.kubernetes.io/component=operator,app.kubernetes.io/name=gemmaserve-operator"
_NODE_FIELDS: Final = ("allocatable", "capacity", "conditions", "nodeInfo")


@dataclass(slots=True)
class Diagnosis:
    """What was collected, and what could not be."""

    files: dict[str, str] = field(default_factory=dict)
    """Content by path in the archive; no secrets."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why, by what."""


class Collector:
    """Collects what there is about one GemmaServe. What the user may not read is named and left out."""

    def __init__(self, kubectl: Kubectl, name: str, now: datetime, tell: Callable[[str], None]) -> None:
        """`tell` is told what is being collected."""
        self._kubectl = kubectl
        self._name = name
        self._now = now
        self._tell = tell
        self._objects: list[Any] = []
        self._texts: dict[str, str] = {}
        self._missing: dict[str, str] = {}

    def collect(self) -> Diagnosis:
        """Everything.

        Raises:
            KubectlError: There is no such GemmaServe, or no cluster.
        """
        self._tell("the resource")
        resource = self._kubectl.get(self._name)
        self._add("resource.yaml", resource)
        namespace = str(resource["metadata"]["namespace"])
        children = self._list("children", _CHILDREN, f"--selector={names.LABEL_NAME}={self._name}")
        self._add_text("termination-messages.txt", "\n".join(_last_words(children)) + "\n")
        self._list("surroundings", _SURROUNDINGS)
        events = self._list("events", "events", keep=self._is_about)
        self._add_text("events.txt", "\n".join(sorted(map(_event_line, events))) + "\n")
        self._list("nodes", "nodes", keep=lambda _: True, slim=_slim_node)
        self._try("versions.yaml", "version", "--output=yaml")
        self._logs(namespace, children, "logs")
        operator = self._list("operator", "pods,deployments.apps", "--all-namespaces", f"--selector={_OPERATOR}")
        for where in {str(dig(obj, "metadata", "namespace")) for obj in operator}:
            self._logs(where, operator, "operator-logs")
        return self._finish()

    def _finish(self) -> Diagnosis:
        """Values that were left out of objects are looked for in every text."""
        secrets = secrets_in(self._objects)
        files = {path: redact_text(text, secrets) for path, text in self._texts.items()}
        summary = [f"kubectl gemmaserve diagnose {self._name}, {self._now:%Y-%m-%dT%H:%M:%SZ}", "", "Collected:"]
        summary += [f"  {path} ({len(text.encode())} bytes)" for path, text in sorted(files.items())]
        summary += ["", "Not collected:", *(f"  {what}: {why}" for what, why in sorted(self._missing.items()))]
        summary += ["  Secrets, and values of environment variables: never"]
        return Diagnosis({"SUMMARY.txt": "\n".join(summary) + "\n"} | files, self._missing)

    def _add(self, path: str, content: Any) -> None:  # noqa: ANN401 - JSON of any shape
        self._objects.append(content)
        self._texts[path] = yaml.safe_dump(redact(content), sort_keys=False, width=110, allow_unicode=True)

    def _add_text(self, path: str, text: str) -> None:
        if text.strip():
            self._texts[path] = text

    def _list(
        self,
        what: str,
        kinds: str,
        *flags: str,
        keep: Callable[[Json], bool] = lambda _: True,
        slim: Callable[[Json], Json] = lambda obj: obj,
    ) -> list[Json]:
        self._tell(what)
        try:
            found = json.loads(self._kubectl.run("get", kinds, *flags, "--output=json")).get("items") or []
        except KubectlError as error:
            self._missing[what] = str(error).splitlines()[0]
            return []
        items = [slim(item) for item in found if keep(item)]
        if items:
            self._add(f"{what}.yaml", items)
        return items

    def _try(self, path: str, *arguments: str, namespace: str | None = None) -> None:
        try:
            self._add_text(path, self._kubectl.run(*arguments, namespace=namespace))
        except KubectlError as error:
            self._missing[path] = str(error).splitlines()[0]

    def _logs(self, namespace: str, objects: Iterable[Json], folder: str) -> None:
        for pod in objects:
            if pod.get("kind") != "Pod" or dig(pod, "metadata", "namespace") != namespace:
                continue
            self._tell(f"logs of {name_of(pod)}")
            for status in dig(pod, "status", "containerStatuses") or []:
                container = str(status.get("name"))
                where = ("logs", name_of(pod), f"--container={container}", *_LOG_LIMITS)
                self._try(f"{folder}/{name_of(pod)}.{container}.log", *where, namespace=namespace)
                if status.get("restartCount"):
                    path = f"{folder}/{name_of(pod)}.{container}.previous.log"
                    self._try(path, *where, "--previous", namespace=namespace)

    def _is_about(self, event: Json) -> bool:
        """The GemmaServe, or what is named after it."""
        about = str(dig(event, "involvedObject", "name") or "")
        return about == self._name or about.startswith(f"{self._name}-")


def write_archive(diagnosis: Diagnosis, path: Path, now: datetime) -> None:
    """Write a gzipped tar archive that only its owner can read; all files in one folder.

    Raises:
        OSError: It cannot be written, or is there already.
    """
    folder = path.name.removesuffix(".tar.gz")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in sorted(diagnosis.files.items()):
            data = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), int(now.timestamp()), 0o600
            archive.addfile(entry, io.BytesIO(data))


def _slim_node(node: Json) -> Json:
    status = {key: dig(node, "status", key) for key in _NODE_FIELDS}
    metadata = {key: dig(node, "metadata", key) for key in ("name", "labels")}
    return {"kind": "Node", "metadata": metadata, "taints": dig(node, "spec", "taints"), "status": status}


def _event_line(event: Json) -> str:
    when = event.get("lastTimestamp") or event.get("eventTime") or dig(event, "metadata", "creationTimestamp")
    about = f"{dig(event, 'involvedObject', 'kind')}/{dig(event, 'involvedObject', 'name')}"
    return f"{when} {event.get('type')} {about} {event.get('reason')}: {event.get('message')}"


def _last_words(children: Iterable[Json]) -> Iterator[str]:
    """How containers have ended, in their own words."""
    for pod in children:
        for status in dig(pod, "status", "containerStatuses") or []:
            for state in ("state", "lastState"):
                end = dig(status, state, "terminated")
                if isinstance(end, dict):
                    where = f"{name_of(pod)}/{status.get('name')} ({state})"
                    code = f"exit code {end.get('exitCode')}, {end.get('reason')}, at {end.get('finishedAt')}"
                    yield f"{where}: {code}\n{end.get('message') or '(no message)'}\n"
