"""What must not leave a cluster does not, and what helps is left as it is."""

import pytest

from gemmaserve_operator.plugin.redaction import LEFT_OUT, redact, redact_text, secrets_in

ENV = [{"name": "MY_KEY", "value": "s3cr3t-value"}, {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf"}}}]


def test_values_of_variables_are_left_out_names_and_references_are_not():
    shown = redact({"spec": {"containers": [{"env": ENV}]}})["spec"]["containers"][0]["env"]
    assert shown == [{"name": "MY_KEY", "value": LEFT_OUT}, ENV[1]]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--api-key=abcdef"], [f"--api-key={LEFT_OUT}"]),
        (["--api-key", "abcdef", "ghijkl", "--x"], ["--api-key", LEFT_OUT, LEFT_OUT, "--x"]),
        (["--hf_token=abcdef"], [f"--hf_token={LEFT_OUT}"]),
        (["--ssl-keyfile-password=abcdef"], [f"--ssl-keyfile-password={LEFT_OUT}"]),
        (["--max-num-batched-tokens=8192", "--tokenizer=a/b"], ["--max-num-batched-tokens=8192", "--tokenizer=a/b"]),
        (["serve", 1], ["serve", 1]),
    ],
)
def test_keys_in_arguments(arguments, shown):
    assert redact({"args": arguments}) == {"args": shown}


def test_copies_of_the_whole_object_are_left_out():
    metadata = {
        "managedFields": [{}],
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "s3cr3t-value",
            "gemmaserve.dev/revision-spec": '{"spec": {"engine": {"env": [{"name": "A", "value": "s3cr3t-value"}]}}}',
            "note": "kept",
        },
    }
    shown = redact({"metadata": metadata})["metadata"]
    assert "s3cr3t-value" not in str(shown)
    assert shown["annotations"]["note"] == "kept"
    assert "engine" in shown["annotations"]["gemmaserve.dev/revision-spec"]
    assert "managedFields" not in shown


def test_a_record_that_cannot_be_read_is_left_out():
    annotations = {"gemmaserve.dev/revision-spec": "no json s3cr3t"}
    assert redact({"annotations": annotations}) == {"annotations": {"gemmaserve.dev/revision-spec": LEFT_OUT}}


def test_a_secret_that_came_along_has_no_contents():
    assert redact({"kind": "Secret", "data": {"a": "b"}, "type": "Opaque"})["data"] == LEFT_OUT


def test_what_was_left_out_is_found_in_texts():
    secrets = secrets_in(
        [{"env": ENV, "args": ["--api-key=another-secret"]}, {"env": [{"name": "P", "value": "/a/b/c/d"}]}]
    )
    assert secrets == {"s3cr3t-value", "another-secret"}
    text = redact_text("args: s3cr3t-value, another-secret, /a/b/c/d", secrets)
    assert text == f"args: {LEFT_OUT}, {LEFT_OUT}, /a/b/c/d"


@pytest.mark.parametrize(
    "text",
    [
        "token hf_abcdefghijklmnopqrst used",
        "Authorization: Bearer abcdef.ghi-jkl",
        "{'api_key': ['abcdefgh']}",
        'HF_TOKEN="abcdefgh"',
        "password: abcdefgh",
        "http://user:abcdefgh@proxy:3128",
    ],
)
def test_what_looks_like_a_token_is_left_out_of_logs(text):
    shown = redact_text(text)
    assert LEFT_OUT in shown
    assert "abcdef" not in shown


@pytest.mark.parametrize("text", ["prompt tokens: 12", "Avg generation throughput: 3.1 tokens/s", "tokenizer=None"])
def test_what_helps_stays(text):
    assert redact_text(text) == text
