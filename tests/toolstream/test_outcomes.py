"""A fault of each class, planted in a scripted stand-in for a server, comes out of `toolstream load` as that class."""

import asyncio
import json
import time

import pytest

from toolstream.commands.load import LoadPlan, run_load
from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES
from toolstream.core.levels import Level, percentiles
from toolstream.core.outcomes import CLASSES, MEANINGS, classify
from toolstream.core.readers import read
from toolstream.core.scenarios import ExpectedCall
from toolstream.edges.client import Client, Server
from toolstream.edges.pool import Stop

EXPECTED = [ExpectedCall("read_file", {"path": "a.txt"})]
ARGUMENTS = '{"path": "a.txt"}'


def call(make, **changes):
    made = make.chat_call("read_file", changes.pop("arguments", ARGUMENTS)) | changes
    return {key: value for key, value in made.items() if value is not None}


def nameless(make):
    made = make.copy(call(make))
    del made["function"]["name"]
    return made


def pieces(make):
    return [call(make, arguments='{"path": '), {"index": 0, "function": {"arguments": '"a.txt"}'}}]


def spilled(make):
    """The gpt-oss fault: one call under two indices."""
    return [call(make, arguments='{"path": '), call(make, index=1, id="call_other", arguments='"a.txt"}')]


def both_in_one_chunk(make):
    return [make.chat_chunk({"content": "x", "tool_calls": [call(make)]}), *make.chat_stream()[1:]]


ANSWERS = {
    "ok": lambda make: make.chat_stream(call(make)),
    "truncated": lambda make: make.chat_stream(call(make))[:-2],
    "no_tool_calls": lambda make: make.chat_stream(text="No.", finish_reason="stop"),
    "args_invalid_json": lambda make: make.chat_stream(call(make, arguments='{"path": "a.txt')),
    "wrong_arguments": lambda make: make.chat_stream(call(make, arguments='{"path": "b.txt"}')),
    "wrong_index": lambda make: make.chat_stream(call(make, index=1)),
    "id_changed": lambda make: make.chat_stream(call(make), call(make, id="call_other", arguments="")),
    "missing_id": lambda make: make.chat_stream(call(make, id=None)),
    "missing_name": lambda make: make.chat_stream(nameless(make)),
    "missing_type": lambda make: make.chat_stream(call(make, type=None)),
    "split_call": lambda make: make.chat_stream(*pieces(make)),
    "content_and_call_in_one_chunk": both_in_one_chunk,
}


async def hang(_request, send):
    await send(b'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {"choices": []}\n\n')
    await asyncio.sleep(60)


async def refuse(_request, send):
    await send(b"HTTP/1.1 500 Oops\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")


async def break_off(_request, send):
    await send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: {}\n\r\n"
    )
    raise ConnectionError


SCRIPTS = {"timeout": hang, "http_error": refuse, "disconnect": break_off}


async def load(url, plan, *, seconds=30.0, stop=None, seen=lambda _level: None):
    async with Client(Server(url), timeout=seconds) as client:
        return await run_load(client, "stand-in", plan, stop=stop or Stop(), seen=seen)


def test_a_fault_is_planted_for_every_class():
    assert {*ANSWERS, *SCRIPTS} == set(CLASSES) == set(MEANINGS)


@pytest.mark.parametrize("outcome", [*ANSWERS, *SCRIPTS])
async def test_a_planted_fault_is_its_class(make, server, scripts, outcome):
    server.script = SCRIPTS.get(outcome) or scripts.answers(ANSWERS[outcome](make))
    result = await load(server.url, LoadPlan([2], 3, expected=EXPECTED), seconds=0.5 if outcome == "timeout" else 30)
    [level] = result.levels
    assert level.outcomes == {outcome: 3}
    assert [failure.classified.outcome for failure in result.failures] == [outcome] * (0 if outcome == "ok" else 3)


def test_every_class_that_fits_is_kept_beside_the_gravest(make):
    found = classify(read(make.exchange(make.chat_stream(call(make, id=None, index=3, arguments="{")))), EXPECTED)
    assert found.outcome == "args_invalid_json"
    assert set(found.others) == {"wrong_arguments", "wrong_index", "missing_id"}


def test_a_tail_under_the_wrong_index_is_invalid_json_first(make):
    """vLLM 0.20.2 under load: the end of one call arrives under the index of the next."""
    tail = {"index": 1, "function": {"arguments": '"a.txt"}'}}
    found = classify(read(make.exchange(make.chat_stream(call(make, arguments='{"path": '), tail))), None)
    assert found.outcome == "args_invalid_json"
    assert {"missing_id", "missing_name", "split_call"} <= set(found.others)


def test_one_call_under_two_indices_is_split(make):
    assert "split_call" in classify(read(make.exchange(make.chat_stream(*spilled(make)))), None).others


def test_a_length_is_a_truncation_and_not_a_completion(make):
    found = classify(read(make.exchange(make.chat_stream(call(make), finish_reason="length"))), EXPECTED)
    assert found.outcome == "truncated"


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("endpoint", [CHAT, RESPONSES, MESSAGES])
def test_a_right_answer_is_ok_in_every_protocol(make, endpoint, streaming):
    body = make.right_answer(endpoint, streaming, [("read_file", ARGUMENTS)], "I read it.")
    answer = read(make.exchange(body if streaming else [body], endpoint=endpoint, streaming=streaming))
    assert classify(answer, EXPECTED)._asdict() == {"outcome": "ok", "others": [], "detail": ""}


async def test_both_modes_alternate(make, server, scripts):
    async def script(request, send):
        build = make.chat_stream if request.body["stream"] else make.chat_whole
        await scripts.answers(build(call(make)))(request, send)

    server.script = script
    result = await load(server.url, LoadPlan([1], 4, modes=(True, False), expected=EXPECTED))
    assert result.levels[0].outcomes == {"ok": 4}
    assert [request.body["stream"] for request in server.requests] == [True, False, True, False]


async def test_a_level_keeps_its_number_of_requests_under_way(make, server, scripts):
    waiting, most = 0, 0

    async def script(request, send):
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.05)
        waiting -= 1
        await scripts.answers(make.chat_stream(call(make)))(request, send)

    server.script = script
    result = await load(server.url, LoadPlan([7], 28, expected=EXPECTED))
    assert (result.levels[0].done, most) == (28, 7)


async def test_a_stop_keeps_what_has_come(make, server, scripts):
    answered = 0

    async def script(request, send):
        nonlocal answered
        answered += 1
        if answered > 5:
            await asyncio.sleep(60)
        await scripts.answers(make.chat_stream(call(make)))(request, send)

    server.script = script
    stop = Stop()
    started = time.monotonic()

    def seen(level):
        if level.done == 5:
            stop.set("enough")

    result = await load(server.url, LoadPlan([2, 50], 1000, expected=EXPECTED), stop=stop, seen=seen)
    assert time.monotonic() - started < 30
    assert [(level.concurrency, level.outcomes) for level in result.levels] == [(2, {"ok": 5})]


async def test_a_server_that_is_not_there_is_a_disconnect(unused_tcp_port):
    result = await load(f"http://127.0.0.1:{unused_tcp_port}", LoadPlan([2], 4))
    assert result.levels[0].outcomes == {"disconnect": 4}


def test_figures_are_percentiles_of_what_came(make):
    level = Level(1, 2, seconds=2.0)
    answer = read(make.exchange(make.chat_stream(call(make))))
    level.add(answer.exchange, classify(answer, EXPECTED))
    figures = level.as_json()
    assert figures["firstChunkSeconds"] == {"p50": 0.01, "p90": 0.01, "p95": 0.01, "p99": 0.01}
    assert figures["totalSeconds"]["p99"] == 1.0
    assert figures["requestsPerSecond"] == 0.5
    # Linear interpolation, as numpy.percentile gives it.
    assert percentiles([4, 1, 3, 2]) == {"p50": 2.5, "p90": 3.7, "p95": 3.85, "p99": 3.97}
    assert json.dumps(figures)
