"""Our parser classes, made of the base classes of whatever vLLM is installed.

Three of them, over one scanner: the server's parser (`Parser`: reasoning, content and calls of a choice, streamed or
not), and behind it the two that vLLM registers by name. A server composes its parser from the two names; when both
are Gemma 4's, `unified` makes it the one of ours.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters import steps
from gemmaserve_parser.adapters.answer import Answer, Heartbeat, Outbox, calls, joined, marker_ids, new_call_id
from gemmaserve_parser.core.events import Content, Reasoning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from gemmaserve_parser.core.events import Event


@cache
def protocol() -> ModuleType:
    """The module of vLLM that holds the messages' types; it has moved."""
    try:
        return importlib.import_module("vllm.entrypoints.generate.base.protocol")
    except ModuleNotFoundError:
        return importlib.import_module("vllm.entrypoints.openai.engine.protocol")


class Deltas:
    """Makes vLLM's messages of events, and numbers a choice's calls."""

    def __init__(self) -> None:
        self._types = protocol()
        self._message = self._types.DeltaMessage
        self._next_index = 0

    def message(self, events: Sequence[Event]) -> Any | None:
        """One `DeltaMessage` of events that may share one; None for none."""
        if len(events) == 1:  # nearly every delta of an answer
            (event,) = events
            if isinstance(event, Content):
                return self._message(content=event.text)
            if isinstance(event, Reasoning):
                return self._message(reasoning=event.text)
        if not events:
            return None
        fields: dict[str, Any] = {}
        if (reasoning := joined(events, Reasoning)) is not None:
            fields["reasoning"] = reasoning
        if (content := joined(events, Content)) is not None:
            fields["content"] = content
        if found := calls(events):
            fields["tool_calls"] = [self._call(call.name, call.arguments) for call in found]
        return self._message(**fields)

    def empty(self) -> Any:
        """A message that says nothing: the heartbeat."""
        return self._message()

    def _call(self, name: str, arguments: str) -> Any:
        index, self._next_index = self._next_index, self._next_index + 1
        function = self._types.DeltaFunctionCall(name=name, arguments=arguments)
        return self._types.DeltaToolCall(index=index, id=new_call_id(), type="function", function=function)


class AtomicToolParser:
    """The tool parser as vLLM registers it, to be mixed into vLLM's `ToolParser`.

    It works alone, without the server's parser and without knowing how the answer ended: what it is given last may
    then bring content and a call in one delta.
    """

    supports_required_and_named = False
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, tools: Any = None, **_: Any) -> None:
        super().__init__(tokenizer, tools)  # type: ignore[call-arg]
        marker_ids(tokenizer)
        self._tokenizer = tokenizer
        self._request: Any = None
        self._answer: Answer | None = None
        self._deltas = Deltas()
        self._heartbeat = Heartbeat()

    def adjust_request(self, request: Any) -> Any:
        """Ask for the markers in the text, and for no guided JSON: the model answers in its own syntax."""
        request.skip_special_tokens = False
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """The calls and the content of a whole answer."""
        _, output = steps.whole(model_output)
        answer = Answer(self._tokenizer, self._with_tools(request), reasoning=False)
        events = answer.feed(model_output, getattr(output, "token_ids", None))
        events += answer.finish(steps.ending_of(model_output))
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

    def extract_tool_calls_streaming(  # noqa: PLR0913, PLR0917  (vLLM's signature)
        self,
        previous_text: str,  # noqa: ARG002
        current_text: str,  # noqa: ARG002
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],  # noqa: ARG002
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any | None:
        """What a delta made certain; None for nothing."""
        if self._answer is None or (request is not self._request and not previous_token_ids):
            self._request = request
            self._answer = Answer(self._tokenizer, self._with_tools(request), reasoning=False)
            self._deltas = Deltas()
        message = self._deltas.message(self._answer.feed(delta_text, delta_token_ids))
        if message is not None:
            self._heartbeat.sent()
        elif self._heartbeat.due() and self._answer.withholding:
            self._heartbeat.sent()
            return self._deltas.empty()
        return message

    def finish_streaming(self) -> Any | None:
        """What was still held back at the end; None for nothing."""
        return self._deltas.message(self._answer.finish(None)) if self._answer is not None else None

    def _with_tools(self, request: Any) -> Any:
        return _Tools(request, self.tools) if not getattr(request, "tools", None) else request  # type: ignore[attr-defined]


class _Tools:
    """A request with the tools that the parser was made with, for callers that give them only there."""

    def __init__(self, request: Any, tools: Any) -> None:
        self.tools = tools
        self._request = request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


class AtomicParser:
    """The server's parser of a choice, to be mixed into the `Parser` that vLLM composed of the two names."""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)  # type: ignore[call-arg]
        self._tokenizer = tokenizer
        self._prompt_token_ids: Sequence[int] | None = None
        self._answer: Answer | None = None
        self._outbox = Outbox()
        self._deltas = Deltas()
        self._heartbeat = Heartbeat()
        steps.join(self)

    @property
    def pending(self) -> int:
        """How many events wait for a further delta."""
        return len(self._outbox)

    def adjust_request(self, request: Any) -> Any:
        """Ask for the markers in the text, whichever of the two parsers is ours."""
        request = super().adjust_request(request)  # type: ignore[misc]
        request.skip_special_tokens = False
        return request

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Take the rendered prompt, which may end inside a thought channel."""
        self._prompt_token_ids = prompt_token_ids
        parent = super()
        if hasattr(parent, "set_prompt_token_ids"):
            parent.set_prompt_token_ids(prompt_token_ids)

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: list[int],
        request: Any,
        prompt_token_ids: list[int] | None = None,
        *,
        finished: bool | None = None,
    ) -> Any | None:
        """What leaves with this delta; None for nothing.

        Args:
            delta_text: The text of this engine step.
            delta_token_ids: Its token ids.
            request: The request.
            prompt_token_ids: The rendered prompt, with the first delta at least.
            finished: Whether this is the last delta; None where this vLLM does not say.
        """
        if self._answer is None:
            self._answer = self._new_answer(request, prompt_token_ids)
        step = steps.current(delta_text)
        events = self._answer.feed(delta_text, delta_token_ids) if delta_text or delta_token_ids else []
        if finished or (step is not None and step.ending is not None):
            events += self._answer.finish(step.ending if step is not None else None)
        if events or self._outbox:
            self._heartbeat.sent()
            return self._deltas.message(self._through_outbox(events, step, finished=finished))
        if self._heartbeat.due() and not finished and self._answer.withholding and hasattr(request, "messages"):
            self._heartbeat.sent()
            return self._deltas.empty()
        return None

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,  # noqa: ARG002  (vLLM's signature; without it there is no tool parser)
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[Any] | None]:
        """Reasoning, content and calls of a whole answer."""
        result, output = steps.whole(model_output)
        return self.read(
            model_output,
            request,
            model_output_token_ids or getattr(output, "token_ids", ()),
            steps.ending_of(model_output),
            getattr(result, "prompt_token_ids", None),
        )

    def read(
        self,
        text: str,
        request: Any,
        token_ids: Sequence[int],
        ending: str | None,
        prompt_token_ids: Sequence[int] | None,
    ) -> tuple[str | None, str | None, list[Any]]:
        """Reasoning, content and calls (`FunctionCall` with an id) of a whole answer that ended with `ending`."""
        answer = self._new_answer(request, prompt_token_ids)
        events = answer.feed(text, token_ids) + answer.finish(ending)
        function_call = protocol().FunctionCall
        found = [function_call(id=new_call_id(), name=call.name, arguments=call.arguments) for call in calls(events)]
        return joined(events, Reasoning), joined(events, Content), found

    def _new_answer(self, request: Any, prompt_token_ids: Sequence[int] | None) -> Answer:
        return Answer(
            self._tokenizer,
            request,
            reasoning=self._reads_thoughts(),
            prompt_token_ids=prompt_token_ids or self._prompt_token_ids,
        )

    def _reads_thoughts(self) -> bool:
        return self._reasoning_parser is not None  # type: ignore[attr-defined]

    def _through_outbox(self, events: list[Event], step: steps.Step | None, *, finished: bool | None) -> list[Event]:
        """What of these events, and of those that wait, leaves now."""
        if len(events) == 1 and not self._outbox:
            return events
        self._outbox.extend(events)
        if step is not None and not finished:
            return self._outbox.take_one()  # further steps follow for the rest
        if finished is False:
            return self._outbox.take_alike()
        return self._outbox.take_all()


def unified(composed: Any, mixin: type = AtomicParser) -> Any:
    """The parser class that vLLM composed, with ours in front where the names are Gemma 4's.

    A reasoning parser of another model beside our tool parser stays as vLLM composed them.
    """
    if composed is None or issubclass(composed, AtomicParser):
        return composed
    tool, reasoning = composed.tool_parser_cls, composed.reasoning_parser_cls
    ours = tool is not None and issubclass(tool, AtomicToolParser)
    if not ours or not (reasoning is None or "Gemma4" in reasoning.__name__):
        return composed
    return type("AtomicGemma4Parser", (mixin, composed), {"tool_parser_cls": tool, "reasoning_parser_cls": reasoning})
