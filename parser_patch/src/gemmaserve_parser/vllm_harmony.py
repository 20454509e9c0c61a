"""The installed vLLM's own chat server of gpt-oss with a scripted engine and a stand-in for the encoding.

See `vllm_stage`. The stand-in makes replays possible where gpt-oss's vocabulary, which vLLM downloads, is not at hand.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.entrypoints.openai.responses.serving import OpenAIServingResponses
from vllm.sampling_params import RequestOutputKind, SamplingParams

from gemmaserve_parser.adapters import harmony, harmony_responses
from gemmaserve_parser.core.harmony_messages import CLOSERS, RETURN
from gemmaserve_parser.replay import NON_STREAMING, Delta
from gemmaserve_parser.vllm_replay import body, gather, whole
from gemmaserve_parser.vllm_stage import Script, ScriptedEngine, Stage, Tokenizer, as_lines, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from gemmaserve_parser.replay import Case, Result

TOOL_PARSER, REASONING_PARSER = "openai", "openai_gptoss"


class StandInEncoding:
    """What our adapters ask of gpt-oss's encoding, over a case's tokens."""

    def __init__(self, marker_ids: Mapping[str, int], decode: Callable[[int], str]) -> None:
        self._marker_ids = marker_ids
        self._decode = decode

    def encode(self, text: str, **_: Any) -> list[int]:
        """The id of a marker."""
        return [self._marker_ids[text]]

    def decode(self, tokens: Sequence[int], **_: Any) -> str:
        """The text of ids."""
        return "".join(self._decode(token) for token in tokens)


class HarmonyStage(Stage):
    """The servers of the installed vLLM for gpt-oss.

    Raises:
        RuntimeError: vLLM reads gpt-oss itself, because our plugin was not loaded.
    """

    def __init__(self, marker_ids: Mapping[str, int], decode: Callable[[int], str]) -> None:
        utils: Any = importlib.import_module("vllm.entrypoints.openai.parser.harmony_utils")
        utils._harmony_encoding = StandInEncoding(marker_ids, decode)  # noqa: SLF001  (where vLLM keeps it)
        super().__init__(Tokenizer(marker_ids, decode), TOOL_PARSER, REASONING_PARSER)
        if not harmony.installed():
            raise RuntimeError("this vLLM reads gpt-oss itself: the plugin of gemmaserve-parser was not loaded")
        manager = importlib.import_module("vllm.parser").ParserManager
        self.parser = manager.get_parser(TOOL_PARSER, REASONING_PARSER, True, **_is_harmony(manager))

    async def _stream_responses(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        def handle() -> AsyncIterator[str]:
            request, context, results = self._harmony_response(body, script, RequestOutputKind.DELTA)
            rest = (context, "scripted", self.tokenizer, None, 0, lambda event: event)
            server = self._server(OpenAIServingResponses)
            events = server._process_harmony_streaming_events(request, None, results, *rest)  # noqa: SLF001
            return as_lines(events)

        return await served(handle)

    async def _complete_responses(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        _, context, results = self._harmony_response(body, script, RequestOutputKind.FINAL_ONLY)
        async for _ in results:
            pass
        server = self._server(OpenAIServingResponses)
        if hasattr(server, "_make_response_output_items_with_harmony"):
            items = server._make_response_output_items_with_harmony(context)  # noqa: SLF001
        else:
            convert = importlib.import_module("vllm.entrypoints.openai.responses.harmony").harmony_to_response_output
            names = context.function_tool_names
            items = [item for message in context.messages for item in convert(message, names)]
        return [item.model_dump(mode="json") for item in items]

    def _harmony_response(
        self, body: Mapping[str, Any], script: Script, kind: Any
    ) -> tuple[Any, Any, AsyncIterator[Any]]:
        request = ResponsesRequest(**{"model": "scripted", "input": "go", **body})
        harmony_responses.begin(request)
        contexts: Any = importlib.import_module("vllm.entrypoints.openai.responses.context")
        streamed = kind is RequestOutputKind.DELTA
        context_class = getattr(contexts, "StreamingHarmonyContext", None) if streamed else None
        context_class = context_class or contexts.HarmonyContext
        known = inspect.signature(contexts.HarmonyContext).parameters
        given: dict[str, Any] = {"messages": [], "available_tools": []}
        if "function_tool_names" in known:
            given["function_tool_names"] = frozenset(tool.name for tool in request.tools if tool.type == "function")
        if "response_parser" in known:
            given["response_parser"] = self.parser(self.tokenizer, request.tools)
        context = context_class(**given)
        parameters = SamplingParams(output_kind=kind)
        engine = ScriptedEngine(script, self.tokenizer.all_special_tokens)

        async def results() -> AsyncIterator[Any]:
            async for result in engine.generate(None, parameters, "scripted"):
                context.append_output(result)
                yield context

        return request, context, results()

    def _server(self, endpoint: Any) -> Any:
        server = super()._server(endpoint)
        server.use_harmony = True
        server.tool_server = None
        return server


def _is_harmony(manager: Any) -> dict[str, bool]:
    return {"is_harmony": True} if "is_harmony" in inspect.signature(manager.get_parser).parameters else {}


def replay(case: Case, mode: str) -> Result:
    """Run a case in one mode, as a chat completion."""
    stage = HarmonyStage(case.marker_ids, case.decode)
    script = Script([ended(case, case.deltas(mode))], case.finish)
    if mode == NON_STREAMING:
        return whole(stage.complete(body(case), script))
    return gather(stage.stream(body(case), script))


def ended(case: Case, deltas: Sequence[Delta]) -> list[Delta]:
    """The deltas as vLLM gives them: a natural end is a token, which the ids hold and the text does not."""
    if case.finish != "stop" or (case.tokens and case.decode(case.tokens[-1]) in CLOSERS):
        return [*deltas]
    stop = str(case.request.get("stop_token") or RETURN)
    last = deltas[-1]
    return [*deltas[:-1], Delta(last.text, (*last.token_ids, case.marker_ids[stop]))]
