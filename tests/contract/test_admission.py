"""The API server says of each spec what the types say: one rule is written in two languages (CEL and Python)."""

from pathlib import Path

import pytest
import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import GEMMASERVE

CASES = yaml.safe_load((Path(__file__).parents[1] / "unit/api/admission.yaml").read_text())


@pytest.fixture
def admit(kube, installed):
    """Asks for a GemmaServe without making it; the answer's status code and the API server's words."""

    def ask(change, *, name="gemma4"):
        spec = {"model": {"uri": "hf://google/gemma-4"}, "image": {"repository": "r.example/vllm", "tag": "0.1.0"}}
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec | change,
        }
        # As kubectl asks: unknown fields are an error.
        asked = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = kube._http.post(GEMMASERVE.path("default"), params=asked, json=body)
        return answer.status_code, answer.json().get("message", "")

    return ask


@pytest.mark.parametrize("change", CASES["accepted"], ids=str)
def test_accepted(admit, change):
    assert admit(change) == (201, "")


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: str(case["spec"]))
def test_refused(admit, case):
    code, message = admit(case["spec"])
    assert code in (400, 422)
    assert case["words"] in message


@pytest.mark.parametrize(
    ("name", "code"), [("a" * names.MAX_NAME_LENGTH, 201), ("a" * (names.MAX_NAME_LENGTH + 1), 422), ("3gemma", 422)]
)
def test_names_leave_room_for_those_of_children(admit, name, code):
    answered, message = admit({}, name=name)
    assert answered == code
    assert ("metadata.name must be at most" in message) == (code == 422)


def test_defaults_are_filled_in(kube, installed):
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": "defaults", "namespace": "default"},
        "spec": {"model": {"uri": "hf://a/b"}, "image": {"repository": "r", "tag": "t"}},
    }
    made = kube._http.post(GEMMASERVE.path("default"), params={"dryRun": "All"}, json=body).json()
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["rollout"]["strategy"] == "BlueGreen"
    assert made["spec"]["routing"]["service"] == {"type": "ClusterIP", "port": 80}
