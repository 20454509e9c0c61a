"""Our parser beside others, through vLLM's older interface, and in several requests at once."""

import asyncio
import json

import pytest
from vllm.reasoning import ReasoningParserManager

from gemmaserve_parser.regressions.cases import THREE_CALLS, THREE_READS, case
from gemmaserve_parser.replay import FIVE, NON_STREAMING, TOKENS, WHOLE
from gemmaserve_parser.vllm_replay import gather, whole
from gemmaserve_parser.vllm_stage import Script, Stage, Tokenizer

STREAMED = (TOKENS, FIVE, WHOLE)
BODY = {"tools": case("").tools}


def tokenizer(made):
    return Tokenizer(made.marker_ids, made.decode)


def calls(result):
    return [(name, json.loads(arguments)) for name, arguments in result.tool_calls]


def ask(stage, script, *, streamed):
    return gather(stage.stream(BODY, script)) if streamed else whole(stage.complete(BODY, script))


def alone(made):
    stage = Stage(tokenizer(made), "gemma4_atomic", None)
    return stage.tool_parser(stage.tokenizer, stage.adjusted(BODY).tools), stage.adjusted(BODY)


@pytest.mark.parametrize("mode", STREAMED)
def test_the_tool_parser_alone_streams_whole_calls(mode):
    made = case(f"One.{THREE_READS}Two.<")
    parser, request = alone(made)
    text, ids, messages = "", [], []
    for delta in made.deltas(mode):
        before, seen = text, [*ids]
        text, ids = text + delta.text, [*ids, *delta.token_ids]
        messages.append(
            parser.extract_tool_calls_streaming(before, text, delta.text, seen, ids, delta.token_ids, request)
        )
    messages.append(parser.finish_streaming())
    chunks = [{"choices": [{"delta": message.model_dump()}]} for message in messages if message is not None]
    result = gather(chunks)
    assert calls(result) == THREE_CALLS
    assert [*result.deltas_per_call] == [1, 1, 1]
    assert result.content == "One.Two.<"


def test_the_tool_parser_alone_reads_a_whole_answer():
    made = case("")
    parser, request = alone(made)
    found = parser.extract_tool_calls(f"One.{THREE_READS}Two.", request)
    assert found.tools_called
    assert [(call.function.name, json.loads(call.function.arguments)) for call in found.tool_calls] == THREE_CALLS
    assert found.content == "One.Two."
    assert len({call.id for call in found.tool_calls}) == 3


@pytest.mark.parametrize("mode", [NON_STREAMING, *STREAMED])
def test_vllms_reasoning_parser_beside_ours_gives_the_same(mode, monkeypatch, upstreams):
    monkeypatch.setitem(ReasoningParserManager.reasoning_parsers, "upstreams_gemma4", upstreams[1])
    made = case(f"<|channel>thought\nhm<channel|>Reading.{THREE_READS}")
    script = Script([made.deltas(mode)], prompt_token_ids=[made.marker_ids["<|turn>"]])
    results = []
    for reasoning in ("gemma4_atomic", "upstreams_gemma4"):
        stage = Stage(tokenizer(made), "gemma4_atomic", reasoning)
        results.append(
            whole(stage.complete(BODY, script)) if mode == NON_STREAMING else gather(stage.stream(BODY, script))
        )
    assert results[0] == results[1]
    assert (calls(results[0]), results[0].reasoning, results[0].content) == (THREE_CALLS, "hm", "Reading.")


@pytest.mark.parametrize("mode", [NON_STREAMING, TOKENS])
def test_another_models_reasoning_parser_beside_ours(mode):
    made = case(f"hm{THREE_READS}")
    thought, *rest = made.deltas(TOKENS)
    texts = {900: "<think>", 901: "</think>"}
    marker_ids = {**made.marker_ids, **{text: id_ for id_, text in texts.items()}}
    opened, closed = (thought._replace(text=text, token_ids=(id_,)) for id_, text in texts.items())
    script = Script([[opened, thought, closed, *rest]])
    both = Tokenizer(marker_ids, lambda id_: texts.get(id_) or made.decode(id_))
    stage = Stage(both, "gemma4_atomic", "deepseek_r1")
    result = ask(stage, script, streamed=mode != NON_STREAMING)
    assert (calls(result), result.reasoning) == (THREE_CALLS, "hm")


def test_streams_at_the_same_time_do_not_touch_each_other():
    texts = [
        f"Start {i}."
        + "".join(f'<|tool_call>call:get_time{{city:<|"|>{i}-{j}<|"|>}}<tool_call|>' for j in range(i % 4))
        for i in range(24)
    ]

    async def all_at_once():
        cases = [case(text) for text in texts]
        stages = [Stage(tokenizer(made), "gemma4_atomic", "gemma4_atomic") for made in cases]
        scripts = [Script([made.deltas((TOKENS, FIVE, WHOLE)[i % 3])]) for i, made in enumerate(cases)]
        streams = [
            stage._stream({**BODY, "stream": True}, script) for stage, script in zip(stages, scripts, strict=True)
        ]
        return await asyncio.gather(*streams)

    for i, chunks in enumerate(asyncio.run(all_at_once())):
        result = gather(chunks)
        assert [arguments for _, arguments in calls(result)] == [{"city": f"{i}-{j}"} for j in range(i % 4)]
        assert not result.faults


def test_choices_that_differ_end_differently():
    called, said = case(THREE_READS), case("Just text.")
    stage = Stage(tokenizer(called), "gemma4_atomic", "gemma4_atomic")
    chunks = stage.stream({**BODY, "n": 2}, Script([called.deltas(WHOLE), said.deltas(TOKENS)]))
    endings = {
        choice["index"]: choice["finish_reason"]
        for chunk in chunks
        for choice in chunk["choices"]
        if choice.get("finish_reason")
    }
    assert endings == {0: "tool_calls", 1: "stop"}
