"""Renders the chart with the real helm, as `helm install` would, and hands out its objects."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcluster import program

CHART = Path(__file__).resolve().parents[2] / "charts" / "gemmaserve-operator"
NEEDED = {"image": {"repository": "registry.example/gemmaserve-operator"}}
"""The one value without a default."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Rendered:
    """What `helm template` printed, or why it refused."""

    objects: list[Json]
    error: str

    def of_kind(self, kind: str) -> list[Json]:
        return [item for item in self.objects if item["kind"] == kind]

    def one(self, kind: str, suffix: str = "") -> Json:
        found = [item for item in self.of_kind(kind) if item["metadata"]["name"].endswith(suffix)]
        assert len(found) == 1, f"{len(found)} objects of kind {kind} named *{suffix}"
        return found[0]


@pytest.fixture(scope="session")
def chart_folder() -> Path:
    return CHART


@pytest.fixture(scope="session")
def helm() -> Callable[..., subprocess.CompletedProcess[str]]:
    executable = program("helm")

    def run(*arguments: str, values: Json) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(executable), *arguments, str(CHART), "--kube-version", "1.30.0", "--values", "-"],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def render(helm) -> Callable[..., Rendered]:
    def run(**values: Any) -> Rendered:
        image = {**NEEDED["image"], **values.pop("image", {})}
        command = ("template", "gemmaserve", "--namespace", "gemmaserve-system")
        done = helm(*command, values={"image": image, **values})
        return Rendered([item for item in yaml.safe_load_all(done.stdout) if item], done.stderr)

    return run


@pytest.fixture(scope="session")
def default(render) -> Rendered:
    rendered = render()
    assert rendered.objects, rendered.error
    return rendered
