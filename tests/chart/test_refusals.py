"""A wrong value is refused before anything is installed, with a message that names it."""

from __future__ import annotations

import json

import pytest
import yaml


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replica": 2}, ["additional properties 'replica' not allowed"]),
        ({"image": {"digset": "x"}}, ["/image", "'digset' not allowed"]),
        ({"image": {"digest": "0.1.0"}}, ["/image/digest", "sha256"]),
        ({"image": {"repository": "registry.example/op@sha256:00"}}, ["/image/repository"]),
        ({"image": {"pullPolicy": "always"}}, ["/image/pullPolicy", "IfNotPresent"]),
        ({"replicas": -1}, ["/replicas", "minimum"]),
        ({"replicas": "2"}, ["/replicas", "want integer"]),
        ({"maxConcurrentGates": 0}, ["/maxConcurrentGates"]),
        ({"watchNamespaces": "team-a"}, ["/watchNamespaces", "want array"]),
        ({"watchNamespaces": ["Team A"]}, ["/watchNamespaces/0", "Team A"]),
        ({"metrics": {"service": {"port": 70000}}}, ["/metrics/service/port"]),
        ({"metrics": {"serviceMonitor": {"interval": "often"}}}, ["/metrics/serviceMonitor/interval", "often"]),
        ({"resources": {"limit": {}}}, ["/resources", "'limit' not allowed"]),
        ({"image": {"repository": ""}}, ["image.repository is not set", "docker build --target operator"]),
        ({"serviceAccount": {"create": False}}, ["serviceAccount.name must be set"]),
        (
            {"metrics": {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}}},
            ["metrics.serviceMonitor.enabled needs metrics.service.enabled"],
        ),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "",
)
def test_refused(render, values, words):
    rendered = render(**values)
    assert not rendered.objects
    for word in words:
        assert word in rendered.error


def test_the_schema_knows_every_value_and_no_other(chart_folder):
    """`resources` is Kubernetes' own type, and maps of the user's are of no names of ours."""

    def check(values, schema, path):
        known = schema.get("properties", {}).keys() - {"global"}
        assert values.keys() == known, path
        for name, inner in schema["properties"].items():
            if name not in {"global", "resources"} and "properties" in inner:
                check(values[name], inner, f"{path}/{name}")

    schema = json.loads((chart_folder / "values.schema.json").read_text())
    check(yaml.safe_load((chart_folder / "values.yaml").read_text()), schema, "")


def test_every_object_of_the_schema_is_closed(chart_folder):
    def check(schema, path):
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path
        for name, inner in schema.get("properties", {}).items():
            check(inner, f"{path}/{name}")

    check(json.loads((chart_folder / "values.schema.json").read_text()), "")


def test_the_readme_has_every_value_with_its_description(chart_folder):
    """`make generate` writes it from the comments in values.yaml; here it is held against the schema."""

    def leaves(schema, path):
        for name, inner in schema["properties"].items():
            if name == "resources" or "properties" not in inner:
                yield f"{path}{name}"
            else:
                yield from leaves(inner, f"{path}{name}.")

    lines = (chart_folder / "README.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| ")][1:]
    described = {row[1] for row in rows if row[4]}
    schema = json.loads((chart_folder / "values.schema.json").read_text())
    assert described == set(leaves(schema, "")) - {"global"}
