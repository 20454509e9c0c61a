"""gpt-oss: the shipped regressions in this vLLM, and that our reading is what vLLM uses."""

import json

from vllm.plugins import load_general_plugins

from gemmaserve_parser.adapters import harmony
from gemmaserve_parser.regressions import main
from gemmaserve_parser.regressions.harmony import case
from gemmaserve_parser.replay import WHOLE, problems


def test_all_pass_with_our_reading(tmp_path):
    report = tmp_path / "report.json"
    assert main(["--parser", "openai", "--report", str(report)]) == 0
    fields = json.loads(report.read_text())
    assert fields["passed"] == fields["total"] >= 34


def test_our_reading_is_installed_once():
    load_general_plugins()
    assert harmony.installed()
    before = harmony.replay(case("Just an answer.", content="Just an answer."), WHOLE)
    harmony.install()
    assert harmony.replay(case("Just an answer.", content="Just an answer."), WHOLE) == before


def test_a_replay_ends_as_vllm_ends():
    made = case(
        '<|channel|>commentary to=functions.ping json<|message|>{"a":1}',
        calls=[("ping", {"a": 1})],
        stop_token="<|call|>",
    )
    for mode in made.modes:
        assert problems(made, harmony.replay(made, mode)) == []
