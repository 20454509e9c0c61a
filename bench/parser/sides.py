"""The parsers that are compared, as functions that take a delta."""

from __future__ import annotations

import asyncio
import time

from scenarios import IDS, TOOLS

from gemmaserve_parser.core.gemma4 import Gemma4Scanner


def core():
    """Our scanner alone."""
    return Gemma4Scanner(TOOLS, marker_ids=IDS).feed


def gemma4():
    """By name: the parser that vLLM's server uses with our names, and vLLM's; and the least that a text delta costs."""
    from vllm.entrypoints.generate.base.protocol import DeltaMessage  # noqa: PLC0415
    from vllm.parser.gemma4 import Gemma4Parser  # noqa: PLC0415

    from gemmaserve_parser.vllm_stage import Stage, Tokenizer  # noqa: PLC0415

    texts = {number: marker for marker, number in IDS.items()}
    tokenizer = Tokenizer(IDS, lambda token_id: texts.get(token_id, "x"))
    ours = Stage(tokenizer, "gemma4_atomic", "gemma4_atomic").parser
    request = _request()
    return {
        "ours": _stepping(lambda: ours(tokenizer, request.tools), request),
        "vllm": _stepping(lambda: Gemma4Parser(tokenizer, request.tools), request),
    }, lambda: lambda text, ids: DeltaMessage(content=text)  # noqa: ARG005


def harmony():
    """The same for gpt-oss, and the encoding that vLLM loads for it."""
    from vllm.entrypoints.openai.parser.harmony_utils import get_encoding  # noqa: PLC0415
    from vllm.parser.harmony import HarmonyParser  # noqa: PLC0415
    from vllm.reasoning.gptoss_reasoning_parser import GptOssReasoningParser  # noqa: PLC0415
    from vllm.tool_parsers.gptoss_tool_parser import GptOssToolParser  # noqa: PLC0415

    from gemmaserve_parser.adapters.harmony_0_24 import server_parser  # noqa: PLC0415
    from gemmaserve_parser.vllm_stage import Tokenizer  # noqa: PLC0415

    names = {"tool_parser_cls": GptOssToolParser, "reasoning_parser_cls": GptOssReasoningParser}
    theirs = type("Composed", (HarmonyParser,), names)
    ours = server_parser(theirs)
    tokenizer = Tokenizer({}, lambda token_id: "x")  # noqa: ARG005
    request = _request()
    return {
        "ours": _stepping(lambda: ours(tokenizer, request.tools), request),
        "vllm": _stepping(lambda: theirs(tokenizer, request.tools), request),
    }, get_encoding()


def passing_on(steps=10_000):
    """Microseconds of an engine's output on its way to the server: by an empty `generate`, and with ours around it."""
    from vllm.outputs import CompletionOutput, RequestOutput  # noqa: PLC0415
    from vllm.sampling_params import RequestOutputKind, SamplingParams  # noqa: PLC0415

    from gemmaserve_parser.adapters import steps as ours  # noqa: PLC0415

    results = [
        RequestOutput("id", None, [1], None, [CompletionOutput(0, "abc", [number], None, None)], False)
        for number in range(steps)
    ]

    class Engine:
        async def generate(self, prompt, sampling_params, request_id):  # noqa: ARG002
            for result in results:
                yield result

    class Reader:
        pending = 0

    async def consume():
        reader = Reader()
        ours.join(reader)
        started = time.thread_time()
        async for _ in Engine().generate(None, SamplingParams(output_kind=RequestOutputKind.DELTA), "id"):
            pass
        return (time.thread_time() - started) / steps * 1e6

    alone = min(asyncio.run(consume()) for _ in range(5))
    ours.install(Engine)
    return {"vllm": alone, "ours": min(asyncio.run(consume()) for _ in range(5))}


def _request():
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415

    return ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "go"}], tools=TOOLS)


def _stepping(new, request):
    def make():
        parse_delta = new().parse_delta
        return lambda text, ids: parse_delta(text, ids, request, prompt_token_ids=[], finished=False)

    return make
