"""Each rule against an answer that keeps all of them, and against one with its own fault planted."""

import json

import pytest

from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES
from toolstream.core.readers import read
from toolstream.core.rules import MUST, RULES, SHOULD
from toolstream.core.scenarios import matrix
from toolstream.core.verdicts import FAILED, INCONCLUSIVE, PASSED, fails, judge, tally

ENDPOINTS = (CHAT, RESPONSES, MESSAGES)
ARGUMENTS = '{"path": "notes.txt"}'


def failed_rules(judged):
    return {verdict.rule.name for verdict in judged.verdicts if verdict.outcome == FAILED}


def right_answer_to(make, question):
    calls = make.expected_calls(question.scenario) if question.calls_are_due else []
    text = "So be it." if question.scenario.text_too or not calls else ""
    body = make.right_answer(question.endpoint, question.streaming, calls, text)
    return make.exchange(
        body if question.streaming else [body], endpoint=question.endpoint, streaming=question.streaming
    )


@pytest.mark.parametrize("question", matrix(ENDPOINTS), ids=lambda question: question.name)
def test_a_right_answer_passes_every_rule(make, question):
    judged = judge(question, read(right_answer_to(make, question)))
    assert failed_rules(judged) == set()
    assert judged.outcome == PASSED


def chat(make, **changes):
    """A right call with some of its fields changed or, where None, taken out."""
    call = make.chat_call("read_file", ARGUMENTS)
    function = call["function"] | {key: changes.pop(key) for key in ("name", "arguments") if key in changes}
    call = call | changes | {"function": function}
    return {key: value for key, value in call.items() if value is not None}


def fragments(make, *texts):
    first = chat(make, arguments=texts[0])
    return [first, *({"index": 0, "function": {"arguments": text}} for text in texts[1:])]


def stream(make, *calls, **more):
    return make.exchange(make.chat_stream(*calls, **more))


def beside_text(make):
    return make.exchange([make.chat_chunk({"content": "x", "tool_calls": [chat(make)]}), *make.chat_stream()[1:]])


def out_of_order(make):
    events = make.responses_stream(("read_file", ARGUMENTS))
    return make.exchange([event for event in events if "added" not in event["type"]], endpoint=RESPONSES)


def silent(make):
    answer = stream(make, chat(make))
    late = [chunk._replace(at=chunk.at + (31 if number > 1 else 0)) for number, chunk in enumerate(answer.chunks)]
    return make.exchange([], chunks=late)


PLANTED = {
    "http-answer": ({}, lambda make: make.exchange(["busy"], status=503, content_type="text/plain")),
    "stream-survives": ({}, lambda make: make.exchange(make.chat_stream()[:2], trouble="disconnect", detail="reset")),
    "chunks-readable": ({}, lambda make: make.exchange([*make.chat_stream(chat(make)), "<html>"])),
    "events-in-order": ({"endpoint": RESPONSES}, out_of_order),
    "stream-ends": ({}, lambda make: make.exchange(make.chat_stream(chat(make))[:-1])),
    "silence-bounded": ({}, silent),
    "call-has-id": ({}, lambda make: stream(make, chat(make, id=None))),
    "call-has-name": ({}, lambda make: stream(make, chat(make, name=""))),
    "call-has-type": ({}, lambda make: stream(make, chat(make, type=None))),
    "delta-complete": ({}, lambda make: stream(make, *fragments(make, '{"path": ', '"notes.txt"}'))),
    "one-delta-per-call": ({}, lambda make: stream(make, *fragments(make, '{"path": ', '"notes.txt"}'))),
    "no-early-json": ({}, lambda make: stream(make, *fragments(make, "{}", '{"path": "notes.txt"}'))),
    "id-unique": ({}, lambda make: stream(make, chat(make), chat(make, index=1))),
    "id-stable": ({}, lambda make: stream(make, chat(make), chat(make, arguments="", id="call_another_one"))),
    "index-counts-up": ({}, lambda make: stream(make, chat(make, index=1))),
    "arguments-are-an-object": ({}, lambda make: stream(make, chat(make, arguments='{"path": "notes'))),
    "arguments-not-empty": ({}, lambda make: stream(make, chat(make, arguments=""))),
    "content-apart-from-call": ({}, beside_text),
    "id-is-fresh": ({}, lambda make: stream(make, chat(make, id="call_0"))),
    "finish-reason-says-calls": ({}, lambda make: stream(make, chat(make), finish_reason="stop")),
    "no-markup-leaks": ({}, lambda make: stream(make, text="<|tool_call>call:f{}", finish_reason="stop")),
    "none-means-none": ({"tool_choice": "none"}, lambda make: stream(make, chat(make))),
    "required-calls": ({"tool_choice": "required"}, lambda make: stream(make, text="No.", finish_reason="stop")),
    "named-calls-that-tool": ({"tool_choice": "named"}, lambda make: stream(make, chat(make, name="list_tasks"))),
    "tool-was-declared": ({}, lambda make: stream(make, chat(make, name="rm_rf"))),
    "calls-as-asked": ({}, lambda make: stream(make, chat(make, arguments='{"path": "other.txt"}'))),
    "cut-call-is-no-call": (
        {"name": "cut-short"},
        lambda make: stream(make, chat(make, name="write_file", arguments='{"path": "fox.txt", "content": "1: the"}')),
    ),
    "text-kept-beside-calls": (
        {"name": "text-around"},
        lambda make: stream(make, chat(make, arguments='{"path": "plan.md"}')),
    ),
}


def test_a_fault_is_planted_for_every_rule():
    assert set(PLANTED) == {rule.name for rule in RULES}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_quoted(make, name):
    asked, answer = PLANTED[name]
    judged = judge(make.question(**asked), read(answer(make)))
    assert name in failed_rules(judged)
    verdict = next(each for each in judged.verdicts if each.rule.name == name)
    breach = verdict.breaches[0]
    assert breach.detail
    assert breach.quote in {*(chunk.text for chunk in answer(make).chunks), ""}
    assert verdict.rule.breaks


@pytest.mark.parametrize(
    "arguments", ["", '{"path": "fox', "{}", '{"path": "fo"}', '{"path": "fox.txt"}', '{"content": "1: the qu"}', "[]"]
)
def test_no_part_of_a_call_that_was_cut_is_a_call(make, arguments):
    answer = stream(make, chat(make, name="write_file", arguments=arguments), finish_reason="length")
    assert "cut-call-is-no-call" in failed_rules(judge(make.question("cut-short"), read(answer)))


@pytest.mark.parametrize(
    "arguments", ['{"path": "fox.txt", "content": "2: a"}', '{"path": "x"}', '{"path": "fox.txt", "n": 1}']
)
def test_another_call_than_the_one_that_was_to_be_cut_is_the_model_s_affair(make, arguments):
    answer = stream(make, chat(make, name="write_file", arguments=arguments))
    assert judge(make.question("cut-short"), read(answer)).outcome == PASSED


def test_where_the_answer_is_cut_no_call_is_missed(make):
    judged = judge(make.question("cut-short"), read(stream(make, text="", finish_reason="length")), expect_calls=True)
    assert judged.outcome == PASSED
    assert not judged.note


def test_null_ids_and_names_count_as_missing(make):
    call = make.chat_call("read_file", ARGUMENTS) | {"id": None}
    assert "call-has-id" in failed_rules(judge(make.question(), read(stream(make, call))))


def test_upstreams_fragments_break_the_strict_rules_and_no_others(make):
    """As OpenAI itself streams, and vLLM up to 0.33: identity on the first delta, arguments in pieces."""
    answer = read(stream(make, *fragments(make, '{"path"', ': "notes', '.txt"}')))
    assert failed_rules(judge(make.question(), answer)) == {"delta-complete", "one-delta-per-call"}
    assert failed_rules(judge(make.question(), answer, profiles=["openai"])) == set()


def test_fragments_that_protocols_demand_are_no_breach(make):
    for endpoint in (RESPONSES, MESSAGES):
        events = make.right_answer(endpoint, True, [("read_file", ARGUMENTS)])
        judged = judge(make.question(endpoint=endpoint), read(make.exchange(events, endpoint=endpoint)))
        assert failed_rules(judged) == set()


def test_arguments_that_are_escaped_are_the_same_arguments(make):
    question = make.question("unicode")
    call = make.chat_call("read_file", json.dumps(dict(question.scenario.expected[0].arguments)))
    assert judge(question, read(stream(make, call))).outcome == PASSED


def test_a_model_that_does_not_call_is_inconclusive(make):
    judged = judge(make.question(), read(stream(make, text="I cannot.", finish_reason="stop")))
    assert judged.outcome == INCONCLUSIVE
    assert judged.note == "the model called no tool"
    assert not fails([judged])


def test_a_model_that_does_not_call_fails_where_calls_are_expected(make):
    answer = read(stream(make, text="I cannot.", finish_reason="stop"))
    assert failed_rules(judge(make.question(), answer, expect_calls=True)) == {"call-expected"}
    none = judge(make.question(tool_choice="none"), answer, expect_calls=True)
    assert none.outcome == PASSED


def test_an_endpoint_that_is_not_there_is_inconclusive(make):
    exchange = make.exchange(["{}"], endpoint=MESSAGES, status=404, content_type="application/json")
    judged = judge(make.question(endpoint=MESSAGES), read(exchange))
    assert judged.outcome == INCONCLUSIVE
    assert "no messages endpoint" in judged.note


@pytest.mark.parametrize(
    "body",
    [
        '{"error":{"message":"This model\'s maximum context length is 2048 tokens. However, your prompt contains at '
        'least 2049 input tokens","type":"BadRequestError","param":"input_tokens","code":400}}',
        '{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}',
    ],
)
def test_a_context_that_is_too_short_for_the_question_says_nothing_of_streams(make, body):
    exchange = make.exchange([body], status=400, content_type="application/json")
    judged = judge(make.question(), read(exchange), expect_calls=True)
    assert judged.outcome == INCONCLUSIVE
    assert "context is too short" in judged.note
    other = make.exchange(['{"error":{"message":"bad tools"}}'], status=400, content_type="application/json")
    assert judge(make.question(), read(other)).outcome == FAILED


def test_a_should_that_fails_does_not_fail_the_check(make):
    judged = judge(make.question(), read(stream(make, chat(make, id="call_0"))))
    assert failed_rules(judged) == {"id-is-fresh"}
    assert not fails([judged])


def test_rules_say_what_breaks_for_known_clients_and_where_they_come_from():
    for rule in RULES:
        assert rule.severity in {MUST, SHOULD}
        assert rule.breaks
        assert rule.source


def test_tallies_count_every_verdict(make):
    good = judge(make.question(), read(stream(make, chat(make))))
    bad = judge(make.question(), read(stream(make, chat(make, id=None))))
    silent_one = judge(make.question(), read(stream(make, text="No.", finish_reason="stop")))
    row = next(each for each in tally([good, bad, silent_one]) if each.rule.name == "call-has-id")
    assert (row.passed, row.failed, row.inconclusive, row.outcome) == (1, 1, 1, FAILED)
    assert [breach.question for breach in row.breaches] == ["chat stream auto one-call"]
