"""gpt-oss on the responses API: the request for whoever reads its answer, and the contexts of vLLM before 0.25.

Those contexts keep openai-harmony's parser, look at its state once an engine step, and so lose what a step of several
tokens brings. Here they keep our reader, and the stream is made of what it read, in order.
"""

from __future__ import annotations

import functools
import importlib
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters.harmony_segments import Piece, SegmentReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_MARK = "_gemmaserve_original"
_SERVING = "vllm.entrypoints.openai.responses.serving"
_request: ContextVar[Any] = ContextVar("gemmaserve_harmony_request", default=None)


def new_reader(tools: Any = None) -> SegmentReader:
    """A reader for the request of the current context.

    Args:
        tools: The declared tools, where they are known otherwise.
    """
    request = _request.get()
    return SegmentReader(
        tools or getattr(request, "tools", None),
        calls=getattr(request, "tool_choice", None) != "none",
        first_call_only=getattr(request, "parallel_tool_calls", None) is False,
    )


def begin(request: Any) -> None:
    """Make `request` that of the current context."""
    _request.set(request)


def install() -> None:
    """Note each request of the responses API; once is enough, twice does no harm."""
    server = importlib.import_module(_SERVING).OpenAIServingResponses
    original = server.create_responses
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    async def create_responses(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        begin(request)
        return await original(self, request, *args, **kwargs)

    setattr(create_responses, _MARK, original)
    server.create_responses = create_responses


def install_contexts() -> None:
    """Replace the parser that the contexts keep, and the stream that is made of it."""
    serving: Any = importlib.import_module(_SERVING)
    context: Any = importlib.import_module("vllm.entrypoints.openai.responses.context")
    streaming = context.StreamingHarmonyContext
    if hasattr(streaming.append_output, _MARK):
        return
    context.get_streamable_parser_for_assistant = MessageStream
    streaming.append_output = _append_output(streaming.append_output)
    streaming.append_tool_output = _append_tool_output
    serving.OpenAIServingResponses._process_harmony_streaming_events = _events  # noqa: SLF001


class MessageStream:
    """What the contexts keep, with as much of openai-harmony's `StreamableParser` as they and their server use.

    Attributes:
        messages: The completed messages of the response, tools' results among them.
        read: What the last step brought.
    """

    last_content_delta: str | None = None
    current_content_type: str | None = None

    def __init__(self) -> None:
        harmony = importlib.import_module("openai_harmony")
        self.current_role = harmony.Role.ASSISTANT
        self._states = harmony.StreamState
        self.messages: list[Any] = []
        self.read: list[Piece] = []
        self._reader = new_reader()

    @property
    def current_channel(self) -> str | None:
        """The channel of the message that is being read, where it is shown."""
        return self._reader.channel

    @property
    def current_recipient(self) -> str | None:
        """The recipient of the message that is being read."""
        return self._reader.recipient

    @property
    def current_content(self) -> str:
        """What an unfinished message has so far; nothing of a call."""
        return self._reader.unfinished

    @property
    def state(self) -> Any:
        """Whether a message is being read."""
        return self._states.EXPECT_START if self._reader.message is None else self._states.CONTENT

    def process(self, token_id: int) -> None:
        """Take a token."""
        self._keep(self._reader.read([token_id]))

    def begin_step(self) -> None:
        """Forget what the step before brought."""
        self.read = []

    def end_turn(self) -> None:
        """End the model's turn; a tool's result or nothing follows."""
        self._keep(self._reader.flush())
        self._reader = new_reader()

    def _keep(self, pieces: list[Piece]) -> None:
        self.read += pieces
        self.messages += [piece.completed for piece in pieces if piece.completed is not None]


def _append_output(original: Any) -> Any:
    @functools.wraps(original)
    def append_output(self: Any, output: Any) -> None:
        self.parser.begin_step()
        if output.outputs[0].token_ids:
            original(self, output)
        elif output.finished and not self.first_tok_of_message:
            self.first_tok_of_message = True
            self.all_turn_metrics.append(self.current_turn_metrics.copy())
            self.current_turn_metrics.reset()
        if output.finished:
            self.parser.end_turn()
            self.messages.extend(self.parser.messages[len(self.messages) - self.num_init_messages :])

    setattr(append_output, _MARK, original)
    return append_output


def _append_tool_output(self: Any, output: list[Any]) -> None:
    """Add a built-in tool's result, from which the next turn's prompt goes on."""
    (message,) = output
    message.recipient = message.recipient or "assistant"
    self.last_tok = self.encoding.render(message)[-1]
    self.parser.messages.append(message)


async def _events(  # noqa: PLR0913, PLR0917  (vLLM's signature)
    self: Any,
    request: Any,
    sampling_params: Any,  # noqa: ARG001
    result_generator: Any,
    context: Any,  # noqa: ARG001
    model_name: str,  # noqa: ARG001
    tokenizer: Any,  # noqa: ARG001
    request_metadata: Any,  # noqa: ARG001
    created_time: int,  # noqa: ARG001
    number: Any,
) -> AsyncIterator[Any]:
    """The events of a response, in place of `_process_harmony_streaming_events`."""
    serving = importlib.import_module(_SERVING)
    state = importlib.import_module("vllm.entrypoints.openai.responses.streaming_events").StreamingState()
    async for step in result_generator:
        self._raise_if_error(step.finish_reason, request.request_id)
        for piece in step.parser.read:
            for event in _events_of(piece, step, state, serving, self.tool_server):
                yield number(event)
            if piece.completed is not None:
                state.reset_for_new_item()


def _events_of(piece: Piece, step: Any, state: Any, serving: Any, tool_server: Any) -> list[Any]:
    names = getattr(step, "function_tool_names", None)
    parser = SimpleNamespace(
        current_channel=piece.channel, current_recipient=piece.recipient, messages=[piece.completed]
    )
    view = SimpleNamespace(
        last_content_delta=piece.delta, parser=parser, function_tool_names=names, is_assistant_action_turn=lambda: True
    )
    if piece.completed is None:
        return [*serving.emit_content_delta_events(view, state)]
    known = () if names is None else (names,)
    done = serving.emit_previous_item_done_events(piece.completed, state, *known)
    return [*done, *serving.emit_tool_action_events(view, state, tool_server)]
