"""Talking to the cluster as the user does: through kubectl, with its contexts, logins and proxies."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Final

from gemmaserve_operator.api import names

Json = dict[str, Any]

RESOURCE: Final = f"{names.PLURAL}.{names.GROUP}"
TIMEOUT_SECONDS: Final = 60.0
_NEXT_STEPS: Final = (
    ("the server doesn't have a resource type", "GemmaServe is not installed in this cluster: install its chart"),
    ("(Forbidden)", "ask for the roles that the chart adds to `view` and `edit`"),
    ("Unauthorized", "log in to the cluster again"),
    ("was refused - did you specify the right host", "is the cluster up, and the context right (--context)?"),
    ("current-context is not set", "choose one: kubectl config use-context NAME"),
    ("context was not found", "kubectl config get-contexts lists them"),
    ("the object has been modified", "somebody has changed it meanwhile: try again"),
)
"""A mark in kubectl's words, and what to do about it."""


class KubectlError(Exception):
    """kubectl failed; the message is its own, with the next step where one is known."""


class Kubectl:
    """kubectl with the flags that say where.

    Args:
        namespace: None for the context's.
        flags: Further flags for each call, such as `--context=NAME`.
        program: kubectl, by name or path.
    """

    def __init__(self, namespace: str | None = None, flags: Sequence[str] = (), program: str = "kubectl") -> None:
        self._namespace = namespace
        self._command = (program, *flags)

    def run(self, *arguments: str, namespace: str | None = None) -> str:
        """What kubectl prints.

        Args:
            arguments: For kubectl.
            namespace: Instead of the one that this was made with.

        Raises:
            KubectlError: It failed, cannot be found, or did not end in a minute.
        """
        where = namespace or self._namespace
        command = [*self._command, *((f"--namespace={where}",) if where else ()), *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_SECONDS, check=False
            )
        except FileNotFoundError as error:
            raise KubectlError(f"{self._command[0]} is not on the PATH: install kubectl") from error
        except subprocess.TimeoutExpired as error:
            raise KubectlError(f"kubectl {arguments[0]} did not end in {TIMEOUT_SECONDS:.0f} s") from error
        if done.returncode:
            raise KubectlError(_explain(done.stderr))
        return done.stdout

    def get(self, name: str) -> Json:
        """One GemmaServe."""
        return self._json("get", RESOURCE, name)

    def list_all(self, *, all_namespaces: bool) -> list[Json]:
        """The GemmaServes of the namespace, or of all."""
        return self._items("get", RESOURCE, *(("--all-namespaces",) if all_namespaces else ()))

    def children(self, name: str, kinds: str) -> list[Json]:
        """The objects of a GemmaServe, of kinds as kubectl names them, comma-separated."""
        return self._items("get", kinds, f"--selector={names.LABEL_NAME}={name}")

    def merge(self, name: str, patch: Json) -> None:
        """Change a GemmaServe by a JSON merge patch."""
        self.run("patch", RESOURCE, name, "--type=merge", f"--patch={json.dumps(patch)}")

    def patch(self, name: str, operations: Sequence[Json]) -> None:
        """Change a GemmaServe by a JSON patch."""
        self.run("patch", RESOURCE, name, "--type=json", f"--patch={json.dumps(operations)}")

    def _json(self, *arguments: str) -> Json:
        content: Json = json.loads(self.run(*arguments, "--output=json"))
        return content

    def _items(self, *arguments: str) -> list[Json]:
        return list(self._json(*arguments).get("items") or [])


def _explain(words: str) -> str:
    said = words.strip().removeprefix("Error from server ").removeprefix("error: ") or "kubectl failed without a word"
    step = next((step for mark, step in _NEXT_STEPS if mark in words), None)
    if step is None and "(NotFound)" in words:
        step = "kubectl get gs --all-namespaces lists all there are"
    return f"{said}\n{step}" if step else said
