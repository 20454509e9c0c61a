"""What the stand-in is trained and measured on."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from localcluster.tinymodel.training import names
from localcluster.tinymodel.training.conversations import conversation

SEEDS = range(300)


def exchanges(*, held_out=False):
    return [conversation(random.Random(seed), held_out=held_out) for seed in SEEDS]


def calls_of(exchange):
    """Each call with the request that it answers."""
    request = ""
    for message in exchange.messages:
        if message["role"] == "user":
            request = message["content"]
        for call in message.get("tool_calls") or []:
            yield request, call["function"]


def test_a_seed_gives_the_same_exchange():
    assert exchanges() == exchanges()


def test_calls_name_declared_tools_and_their_arguments():
    for exchange in exchanges():
        declared = {tool["function"]["name"]: tool["function"] for tool in exchange.tools}
        assert len(declared) == len(exchange.tools)
        for _, call in calls_of(exchange):
            parameters = declared[call["name"]]["parameters"]
            assert call["arguments"].keys() == parameters.get("properties", {}).keys()


def test_every_text_argument_stands_in_the_request_letter_for_letter():
    for exchange in exchanges():
        for request, call in calls_of(exchange):
            for value in call["arguments"].values():
                assert not isinstance(value, str) or value in request, (request, call)


def test_one_to_three_calls_with_and_without_thought_and_none_at_all():
    counted = Counter(len(message.get("tool_calls") or []) for made in exchanges() for message in made.messages)
    assert min(counted[number] for number in range(4)) > 20
    assert max(counted) == 3
    assert {made.thinking for made in exchanges()} == {True, False}


@pytest.mark.parametrize("held_out", [True, False])
def test_names_come_from_one_part_only(held_out):
    made = [conversation(random.Random(seed), held_out=held_out) for seed in SEEDS]
    files = [
        value
        for exchange in made
        for _, call in calls_of(exchange)
        for key, value in call["arguments"].items()
        if key in {"path", "filePath", "file_path", "file", "filename"}
    ]
    assert len(files) > 50
    assert all(names.is_held_out(value) is held_out for value in files)


def test_names_of_the_scenarios_are_held_out():
    assert all(names.is_held_out(name) for name in ("notes.txt", "a.txt", "résumé-日本語-🦊.txt", "src/main.py"))


def test_a_sixteenth_of_all_names_is_held_out():
    source = random.Random(0)
    held_out = sum(names.is_held_out(names.file(source)) for _ in range(4000))
    assert 150 < held_out < 400


def test_the_last_sentence_tells_the_first_line_of_each_result():
    for exchange in exchanges():
        results = []
        for message in exchange.messages:
            if message["role"] == "tool":
                results.append(message["content"].split("\n")[0])
            elif results:
                assert message["content"] == f"Here is what I got: {'; '.join(results)}."
                results = []


def test_exchanges_are_what_a_client_may_send():
    for exchange in exchanges():
        assert json.loads(json.dumps(exchange.messages)) == exchange.messages
        assert exchange.messages[-1]["role"] == "assistant"
        asked = [call["id"] for message in exchange.messages for call in message.get("tool_calls") or []]
        answered = [message["tool_call_id"] for message in exchange.messages if message["role"] == "tool"]
        assert asked == answered
