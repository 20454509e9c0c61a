"""What is generated from the types and committed, and what a CustomResourceDefinition must and must not hold."""

import re
from pathlib import Path

import pytest
import yaml

from gemmaserve_operator.api import reasons
from gemmaserve_operator.api.crd import build_crd, render_crd
from gemmaserve_operator.api.reference import render_reference
from gemmaserve_operator.api.spec import GemmaServeSpec

ROOT = Path(__file__).parents[3]
CRD_FILE = ROOT / "charts/gemmaserve-operator/files/gemmaserves.yaml"


def schema():
    return build_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def walk(node, path=""):
    yield path, node
    for name, part in node.get("properties", {}).items():
        yield from walk(part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from walk(node[key], f"{path}[]")


def test_the_committed_crd_is_what_the_types_say():
    assert CRD_FILE.read_text() == render_crd(), "run `make generate` and commit what changed"


def test_the_committed_reference_is_what_the_types_say():
    assert (ROOT / "docs/api.md").read_text() == render_reference(), "run `make generate` and commit what changed"


def test_the_crd_is_small_enough_for_client_side_apply():
    assert len(render_crd().encode()) < 64 * 1024


def test_the_schema_is_structural():
    """Only what apiextensions/v1 takes: nothing referred to, no unions, a type everywhere."""
    for path, node in walk(schema()):
        assert not {"$ref", "$defs", "title", "const", "oneOf", "allOf", "discriminator"} & set(node), path
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path
        assert node.get("type") != "null", path
        assert node.get("default", "") is not None, path
        assert "anyOf" not in node or node.get("x-kubernetes-int-or-string"), path


def test_every_field_is_described():
    for part in ("spec", "status"):
        for path, node in walk(schema()["properties"][part], part):
            if not path.endswith("[]"):
                assert node.get("description"), f"{path} has no description"


def test_every_rule_tells_what_to_do():
    rules = [rule for _, node in walk(schema()) for rule in node.get("x-kubernetes-validations", [])]
    assert len(rules) > 20
    for rule in rules:
        assert len(rule["message"]) > 20
        assert "\n" not in rule["rule"]


def test_defaults_are_the_types_own():
    """What the API server fills into the least resource is what Python would have assumed."""

    def fill(node, value):
        for name, part in node.get("properties", {}).items():
            if name not in value and "default" in part:
                value[name] = {} if part["default"] == {} else part["default"]
            if isinstance(value.get(name), dict):
                fill(part, value[name])
        return value

    least = {"model": {"uri": "hf://a/b"}, "image": {"repository": "r", "tag": "t"}}
    parsed = GemmaServeSpec.model_validate(least)
    filled = fill(schema()["properties"]["spec"], {key: dict(value) for key, value in least.items()})
    assert filled["rollout"]["strategy"] == "BlueGreen"
    assert GemmaServeSpec.model_validate(filled) == parsed


def test_columns_and_subresources():
    version = build_crd()["spec"]["versions"][0]
    columns = [(column["name"].upper(), column.get("priority", 0)) for column in version["additionalPrinterColumns"]]
    assert [name for name, priority in columns if priority == 0] == [
        "READY",
        "ACTIVE",
        "CANDIDATE",
        "REPLICAS",
        "VERIFIED",
        "PHASE",
        "AGE",
    ]
    assert [name for name, priority in columns if priority == 1] == ["URL", "IMAGE", "MODEL"]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    assert build_crd()["spec"]["names"]["shortNames"] == ["gs"]
    assert build_crd()["spec"]["names"]["categories"] == ["all"]


def every_reason():
    return sorted(value for key, value in vars(reasons).items() if key.isupper() and isinstance(value, str))


def test_reasons_are_camel_case():
    assert all(re.fullmatch(r"([A-Z][a-z]+|[A-Z]{3})+", reason) for reason in every_reason())


@pytest.mark.parametrize("reason", every_reason())
def test_every_reason_has_its_section_in_troubleshooting(reason):
    page = (ROOT / "docs/troubleshooting.md").read_text()
    assert re.search(rf"^### {reason}$", page, re.MULTILINE), f"docs/troubleshooting.md has no section {reason}"


def test_troubleshooting_names_no_reason_that_is_not_given():
    page = (ROOT / "docs/troubleshooting.md").read_text()
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == set(every_reason())


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_examples_are_valid(path):
    documents = [doc for doc in yaml.safe_load_all(path.read_text()) if doc["kind"] == "GemmaServe"]
    assert documents
    for document in documents:
        assert document["apiVersion"] == "gemmaserve.dev/v1alpha1"
        GemmaServeSpec.model_validate(document["spec"])
