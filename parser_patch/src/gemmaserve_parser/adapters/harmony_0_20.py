"""gpt-oss on vLLM 0.20.2 to 0.23: functions around openai-harmony's parser, called by the chat server."""

from __future__ import annotations

import functools
import importlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ref

from gemmaserve_parser.adapters import harmony_responses, keepalive, steps
from gemmaserve_parser.adapters.answer import Heartbeat, Outbox, calls, joined, new_call_id
from gemmaserve_parser.adapters.chat import finish_reason
from gemmaserve_parser.adapters.harmony_answer import HarmonyAnswer
from gemmaserve_parser.adapters.parsers import Deltas, protocol
from gemmaserve_parser.core.events import Content, Reasoning

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

_MARK = "_gemmaserve_original"


class ChatStream:
    """One streamed choice, where the chat server keeps openai-harmony's parser of it.

    The server gives it every token by `process`, and then asks for the step's delta by `deliver`; what it reads
    besides says nothing, because the delta says all.

    Attributes:
        step: The output that the server is handling.
    """

    current_channel: str | None = None
    current_recipient: str | None = None
    last_content_delta: str | None = None

    def __init__(self, request: Any) -> None:
        self.step = steps.Step("")
        self._request = request
        self._answer = HarmonyAnswer(request)
        self._token_ids: list[int] = []
        self._outbox = Outbox()
        self._deltas = Deltas()
        self._heartbeat = Heartbeat()
        self._called = False

    @property
    def pending(self) -> int:
        """How many events wait for a further delta."""
        return len(self._outbox)

    def process(self, token_id: int) -> None:
        """Take a token of the step."""
        self._token_ids.append(token_id)

    def deliver(self) -> tuple[Any | None, bool]:
        """The step's delta, None for nothing; and whether the choice ends with `tool_calls`."""
        self._outbox.extend(self._answer.feed("", self._token_ids))
        self._token_ids = []
        ending = self.step.ending
        if ending is not None:
            self._outbox.extend(self._answer.finish(ending))
        message = self._deltas.message(self._outbox.take_one())
        if message is not None:
            self._heartbeat.sent()
            self._called = self._called or bool(message.tool_calls)
        elif ending is None and self._answer.withholding and self._heartbeat.due():
            self._heartbeat.sent()
            message = self._deltas.empty()
        ends_with_calls = ending is not None and self._called
        return message, ends_with_calls and finish_reason(ending, self._request, calls=True) == "tool_calls"


_streamed: ContextVar[tuple[Any, list[ChatStream]] | None] = ContextVar("gemmaserve_harmony_streamed", default=None)


def installed() -> bool:
    """Whether vLLM reads gpt-oss with ours."""
    return hasattr(_serving().extract_harmony_streaming_delta, _MARK)


def install() -> None:
    """Replace what vLLM reads gpt-oss with; once is enough, twice does no harm."""
    serving = _serving()
    if installed():
        return
    tool_parser = importlib.import_module("vllm.tool_parsers.openai_tool_parser").OpenAIToolParser
    server = serving.OpenAIServingChat
    server.chat_completion_stream_generator = _stream(server.chat_completion_stream_generator)
    server.chat_completion_full_generator = _full(server.chat_completion_full_generator)
    tool_parser.extract_tool_calls = _extract_tool_calls
    serving.parse_chat_output = _parse_chat_output
    serving.get_streamable_parser_for_assistant = _new_stream
    setattr(_extract_delta, _MARK, serving.extract_harmony_streaming_delta)
    serving.extract_harmony_streaming_delta = _extract_delta
    harmony_responses.install()
    harmony_responses.install_contexts()
    keepalive.install()


def _serving() -> Any:
    return importlib.import_module("vllm.entrypoints.openai.chat_completion.serving")


def _stream(original: Any) -> Any:
    @functools.wraps(original)
    async def chat_completion_stream_generator(
        self: Any, request: Any, result_generator: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[str]:
        results = result_generator
        if self.use_harmony:
            streams: list[ChatStream] = []
            _streamed.set((request, streams))
            results = _divided(result_generator, streams)
        async for line in original(self, request, results, *args, **kwargs):
            yield line

    return chat_completion_stream_generator


async def _divided(results: Any, streams: list[ChatStream]) -> AsyncIterator[Any]:
    readers: list[ref[Any]] = [ref(stream) for stream in streams]
    async for result in results:
        for step, divided in steps.divide(result, readers):
            streams[divided.outputs[0].index].step = step
            yield divided


def _new_stream() -> ChatStream:
    """The next choice's stream: the server makes them, in order, before it asks for the first output."""
    streamed = _streamed.get()
    if streamed is None:
        raise RuntimeError("a Harmony stream was opened outside the chat server")
    request, streams = streamed
    streams.append(ChatStream(request))
    return streams[-1]


def _extract_delta(harmony_parser: ChatStream, **_: Any) -> tuple[Any | None, bool]:
    return harmony_parser.deliver()


def _full(original: Any) -> Any:
    @functools.wraps(original)
    async def chat_completion_full_generator(
        self: Any, request: Any, result_generator: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if not self.use_harmony:
            return await original(self, request, result_generator, *args, **kwargs)
        endings: dict[int, str | None] = {}
        response = await original(self, request, _noting(result_generator, endings), *args, **kwargs)
        for choice in getattr(response, "choices", ()):
            called = bool(choice.message.tool_calls)
            choice.finish_reason = finish_reason(endings.get(choice.index), request, calls=called)
        return response

    return chat_completion_full_generator


async def _noting(results: Any, endings: dict[int, str | None]) -> AsyncIterator[Any]:
    async for result in results:
        endings.update((output.index, output.finish_reason) for output in result.outputs)
        yield result


def _parse_chat_output(token_ids: Sequence[int]) -> tuple[str | None, str | None, bool]:
    """Reasoning and content of a whole answer, for a server without tool parser."""
    answer = HarmonyAnswer(None)
    events = answer.feed("", token_ids) + answer.finish(None)
    return joined(events, Reasoning), joined(events, Content), False


def _extract_tool_calls(self: Any, model_output: str, request: Any, token_ids: Sequence[int] | None = None) -> Any:
    """Calls and content of a whole answer, in place of `OpenAIToolParser.extract_tool_calls`."""
    answer = HarmonyAnswer(request, tools=getattr(self, "tools", None))
    events = answer.feed(model_output, token_ids) + answer.finish(None)
    types = protocol()
    found = [
        types.ToolCall(
            id=new_call_id(), type="function", function=types.FunctionCall(name=call.name, arguments=call.arguments)
        )
        for call in calls(events)
    ]
    return types.ExtractedToolCallInformation(
        tools_called=bool(found), tool_calls=found, content=joined(events, Content)
    )
