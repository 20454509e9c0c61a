"""The installed vLLM's own chat server with a scripted engine in place of a model.

Everything between the engine's outputs and a client's chunks is the installed vLLM's code and the parser that it
hands out for a name; the engine says what a test tells it to. There is no model, no GPU and no network.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat
from vllm.entrypoints.openai.responses import api_router
from vllm.entrypoints.openai.responses.context import SimpleContext
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.entrypoints.openai.responses.serving import OpenAIServingResponses
from vllm.outputs import CompletionOutput, RequestOutput
from vllm.parser import ParserManager
from vllm.plugins import load_general_plugins
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine.async_llm import AsyncLLM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from gemmaserve_parser.replay import Delta

_MODEL = "scripted"
_T = TypeVar("_T")


class Tokenizer:
    """A stand-in for a Gemma 4 tokenizer: the markers' ids, and the texts of the ids that a script uses."""

    def __init__(self, marker_ids: Mapping[str, int], decode: Callable[[int], str]) -> None:
        self._marker_ids = dict(marker_ids)
        self._decode = decode
        self.all_special_ids = [*self._marker_ids.values()]
        self.all_special_tokens = [*self._marker_ids]
        self.is_fast = True

    def get_vocab(self) -> dict[str, int]:
        """The markers and their ids."""
        return self._marker_ids

    def encode(self, text: str, **_: Any) -> list[int]:
        """The id of a marker; nothing else is known."""
        return [self._marker_ids[text]] if text in self._marker_ids else []

    def decode(self, ids: int | Sequence[int], *, skip_special_tokens: bool = False, **_: Any) -> str:
        """The text of ids."""
        ids = [ids] if isinstance(ids, int) else ids
        return "".join(self._decode(id_) for id_ in ids if not skip_special_tokens or id_ not in self.all_special_ids)


class Script(NamedTuple):
    """What the engine says for one request.

    Attributes:
        choices: For each choice its deltas, in the order of the engine's steps.
        finish: How every choice ends: `stop` or `length`.
        prompt_token_ids: The rendered prompt.
    """

    choices: Sequence[Sequence[Delta]]
    finish: str = "stop"
    prompt_token_ids: Sequence[int] = ()


class ScriptedEngine(AsyncLLM):  # type: ignore[misc]
    """vLLM's engine client, whose outputs are those of a script."""

    def __init__(self, script: Script, markers: Sequence[str]) -> None:
        self._script = script
        self._markers = markers
        self.log_requests = False
        self.aborted: list[str] = []

    def __del__(self) -> None:
        """Nothing was started."""

    async def add_request(self, request_id: str, prompt: Any, params: Any, **_: Any) -> _Collector:  # noqa: ARG002
        """Take a request; its outputs come from the script."""
        return _Collector(request_id, [*self._outputs(request_id, params)])

    async def abort(self, request_id: str, **_: Any) -> None:
        """Note that a request was cancelled."""
        self.aborted.append(request_id)

    def _outputs(self, request_id: str, params: Any) -> Sequence[Any]:
        scripts = [[self._texted(delta, params) for delta in deltas] for deltas in self._script.choices]
        if params.output_kind is not RequestOutputKind.DELTA:
            whole = [
                ("".join(text for text, _ in deltas), [id_ for _, ids in deltas for id_ in ids]) for deltas in scripts
            ]
            return [self._result(request_id, [self._output(i, *each, last=True) for i, each in enumerate(whole)], True)]
        steps = [
            (i, delta, position == len(deltas) - 1)
            for position in range(max(map(len, scripts)))
            for i, deltas in enumerate(scripts)
            for delta in deltas[position : position + 1]
        ]
        ends = [*(False for _ in steps[1:]), True]
        return [
            self._result(request_id, [self._output(i, *delta, last=last)], end)
            for (i, delta, last), end in zip(steps, ends, strict=True)
        ]

    def _texted(self, delta: Delta, params: Any) -> tuple[str, list[int]]:
        text = delta.text
        for marker in self._markers if params.skip_special_tokens else ():
            text = text.replace(marker, "")
        return text, [*delta.token_ids]

    def _output(self, index: int, text: str, token_ids: list[int], *, last: bool) -> Any:
        return CompletionOutput(
            index=index,
            text=text,
            token_ids=token_ids,
            cumulative_logprob=None,
            logprobs=None,
            finish_reason=self._script.finish if last else None,
        )

    def _result(self, request_id: str, outputs: list[Any], finished: bool) -> Any:
        return RequestOutput(
            request_id=request_id,
            prompt=None,
            prompt_token_ids=[*self._script.prompt_token_ids],
            prompt_logprobs=None,
            outputs=outputs,
            finished=finished,
            num_cached_tokens=0,
        )


class _Collector:
    def __init__(self, request_id: str, outputs: list[Any]) -> None:
        self.request_id = request_id
        self._outputs = outputs[::-1]

    def get_nowait(self) -> Any:
        return self._outputs.pop()

    async def get(self) -> Any:
        return self._outputs.pop()

    def close(self) -> None:
        self._outputs.clear()


class Stage:
    """A chat server of the installed vLLM, started with these parser names.

    Args:
        tokenizer: What the script's texts and ids are told by.
        tool_parser: `--tool-call-parser`.
        reasoning_parser: `--reasoning-parser`; None for none.

    Raises:
        Exception: What the installed vLLM raises at its start for these names.
    """

    def __init__(self, tokenizer: Tokenizer, tool_parser: str, reasoning_parser: str | None) -> None:
        load_general_plugins()
        self.tokenizer = tokenizer
        self.parser = ParserManager.get_parser(
            tool_parser_name=tool_parser,
            reasoning_parser_name=reasoning_parser,
            enable_auto_tools=True,
            model_name=_MODEL,
        )
        self.tool_parser = ParserManager.get_tool_parser(tool_parser, enable_auto_tools=True)
        self._reasoning_parser = ParserManager.get_reasoning_parser(reasoning_parser)

    def stream(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        """The chunks that a client receives for a streamed request, without `[DONE]`."""
        return _run(self._stream({**body, "stream": True}, script))

    def complete(self, body: Mapping[str, Any], script: Script) -> dict[str, Any]:
        """The response of a request that is not streamed."""
        return _run(self._complete(body, script))

    def adjusted(self, body: Mapping[str, Any]) -> Any:
        """The request as the server passes it on to the engine."""
        request = ChatCompletionRequest(**{"model": _MODEL, "messages": [{"role": "user", "content": "go"}], **body})
        if self.parser is not None and (request.tool_choice != "none" or self._reasoning_parser is not None):
            return self.parser(self.tokenizer, request.tools).adjust_request(request)
        return request

    def cancel(self, body: Mapping[str, Any], script: Script, *, after: int) -> list[str]:
        """Let a client go away after some chunks; the requests that the engine was then told to abort."""

        async def run() -> list[str]:
            request, server, arguments, engine = self._request(body, script, RequestOutputKind.DELTA)
            stream = server.chat_completion_stream_generator(request, *arguments)
            for _ in range(after):
                await anext(stream)
            await stream.aclose()
            await arguments[0].aclose()
            return engine.aborted

        return _run(run())

    def stream_messages(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        """The events of `/v1/messages`, for what vLLM makes of a request there: one of chat completions."""
        return _run(self._stream_messages({**body, "stream": True}, script))

    def complete_messages(self, body: Mapping[str, Any], script: Script) -> dict[str, Any]:
        """The response of `/v1/messages`."""
        response = _run(self._full(body, script, AnthropicServingMessages))
        return dict(self._server(AnthropicServingMessages).messages_full_converter(response).model_dump())

    def stream_responses(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        """The events of `/v1/responses` that tell of the response's items."""
        return _run(self._stream_responses(body, script))

    def complete_responses(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        """The items of a response of `/v1/responses`."""
        return _run(self._complete_responses(body, script))

    async def _stream(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        def handle() -> AsyncIterator[str]:
            request, server, arguments, _ = self._request(body, script, RequestOutputKind.DELTA)
            stream: AsyncIterator[str] = server.chat_completion_stream_generator(request, *arguments)
            return stream

        return await served(handle)

    async def _stream_messages(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        def handle() -> AsyncIterator[str]:
            request, _, arguments, _ = self._request(body, script, RequestOutputKind.DELTA)
            server = self._server(AnthropicServingMessages)
            stream: AsyncIterator[str] = server.chat_completion_stream_generator(request, *arguments)
            if not hasattr(server, "chat_completion_stream_generator_raw"):
                stream = server.message_stream_converter(stream)
            return stream

        return await served(handle)

    async def _stream_responses(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        def handle() -> AsyncIterator[str]:
            request, parameters, context, results = self._response(body, script, RequestOutputKind.DELTA)
            server = self._server(OpenAIServingResponses)
            rest = (context, _MODEL, self.tokenizer, _Metadata(), 0, lambda event: event)
            events = server._process_simple_streaming_events(request, parameters, results, *rest)  # noqa: SLF001
            return as_lines(events)

        return await served(handle)

    async def _complete_responses(self, body: Mapping[str, Any], script: Script) -> list[dict[str, Any]]:
        request, _, context, results = self._response(body, script, RequestOutputKind.FINAL_ONLY)
        async for _ in results:
            pass
        server, output = self._server(OpenAIServingResponses), context.final_output.outputs[0]
        parser = {"parser": context.response_parser} if hasattr(context, "response_parser") else {}
        items = server._make_response_output_items(request, output, self.tokenizer, **parser)  # noqa: SLF001
        return [item.model_dump(mode="json") for item in items]

    def _response(self, body: Mapping[str, Any], script: Script, kind: Any) -> tuple[Any, Any, Any, AsyncIterator[Any]]:
        request = ResponsesRequest(**{"model": _MODEL, "input": "go", **body})
        given: dict[str, Any] = {}
        if "response_parser" in inspect.signature(SimpleContext).parameters and self.parser is not None:
            given["response_parser"] = self.parser(self.tokenizer, request.tools)
        context = SimpleContext(**given)
        parameters = SamplingParams(output_kind=kind, skip_special_tokens=False)
        engine = ScriptedEngine(script, self.tokenizer.all_special_tokens)

        async def results() -> AsyncIterator[Any]:
            async for result in engine.generate(None, parameters, "scripted"):
                context.append_output(result)
                yield context

        return request, parameters, context, results()

    async def _complete(self, body: Mapping[str, Any], script: Script) -> dict[str, Any]:
        return dict((await self._full(body, script, OpenAIServingChat)).model_dump())

    async def _full(self, body: Mapping[str, Any], script: Script, endpoint: Any) -> Any:
        request, _, arguments, _ = self._request(body, script, RequestOutputKind.FINAL_ONLY)
        server = self._server(endpoint)
        parsers: dict[str, Any] = {}
        if "parser" in inspect.signature(server.chat_completion_full_generator).parameters:
            parsers["parser"] = self.parser(self.tokenizer, request.tools) if self.parser is not None else None
        elif self._reasoning_parser is not None:
            parsers["reasoning_parser"] = self._reasoning_parser(self.tokenizer)
        return await server.chat_completion_full_generator(request, *arguments, **parsers)

    def _request(
        self, body: Mapping[str, Any], script: Script, kind: Any
    ) -> tuple[Any, Any, tuple[Any, ...], ScriptedEngine]:
        request = self.adjusted(body)
        parameters = SamplingParams(output_kind=kind, skip_special_tokens=request.skip_special_tokens)
        engine = ScriptedEngine(script, self.tokenizer.all_special_tokens)
        results: AsyncIterator[Any] = engine.generate(None, parameters, "scripted")
        arguments: tuple[Any, ...] = (results, "scripted", _MODEL, [], self.tokenizer, _Metadata())
        return request, self._server(OpenAIServingChat), arguments, engine

    def _server(self, endpoint: Any) -> Any:
        server = object.__new__(endpoint)
        settings: dict[str, Any] = {
            "parser_cls": self.parser,
            "parser": self.parser,
            "tool_parser": self.tool_parser,
            "reasoning_parser_cls": self._reasoning_parser,
            "enable_auto_tools": True,
            "use_harmony": False,
            "tool_call_id_type": "random",
            "response_role": "assistant",
            "renderer": _Renderer(self.tokenizer),
            "chat_template": None,
            "chat_template_content_format": "auto",
            "default_chat_template_kwargs": {},
            "chat_template_kwargs": {},
            "stop_reason_map": {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"},
            "online_renderer": _Renderer(self.tokenizer),
        }
        off = ["enable_force_include_usage", "enable_log_deltas", "enable_log_outputs", "enable_prompt_tokens_details"]
        off += ["enable_per_request_metrics", "_include_reasoning_tokens_details"]
        none = ["request_logger", "system_fingerprint", "model_config"]
        for name, value in {**dict.fromkeys(off, False), **dict.fromkeys(none), **settings}.items():
            setattr(server, name, value)
        return server


def _run(request: Coroutine[Any, Any, _T]) -> _T:
    """Have a request handled in a context that nothing has touched, as each of a server's requests is."""
    return contextvars.Context().run(asyncio.run, request)


def as_lines(events: AsyncIterator[Any]) -> AsyncIterator[str]:
    """A responses stream as server-sent events, by the server's own code."""
    lines: AsyncIterator[str] = api_router._convert_stream_to_sse_events(events)  # noqa: SLF001
    return lines


async def served(handle: Callable[[], AsyncIterator[str]]) -> list[dict[str, Any]]:
    """The data of a stream of server-sent events, as vLLM serves it: made in one task, read in another."""

    async def run() -> AsyncIterator[str]:
        return handle()

    found = [line.partition("data: ")[2].strip() async for line in await asyncio.create_task(run())]
    return [json.loads(data) for data in found if data not in ("", "[DONE]")]


class _Metadata:
    final_usage_info: Any = None


class _Renderer:
    reasoning_effort_map: Any = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
