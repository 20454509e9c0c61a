"""The server under test: the installed vLLM's, started with the parser's name, its engine scripted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gemmaserve_parser.replay import NON_STREAMING, WHOLE, Case, Result, problems
from gemmaserve_parser.vllm_replay import gather, prompt_ids, whole
from gemmaserve_parser.vllm_stage import Script, Stage, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping


class Answer(NamedTuple):
    """What a client received.

    Attributes:
        chunks: The stream's chunks.
        result: What the client makes of them.
    """

    chunks: list[dict[str, Any]]
    result: Result

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every entry of every delta's `tool_calls`, in order."""
        return [call for delta in self.deltas for call in delta.get("tool_calls") or ()]

    @property
    def deltas(self) -> list[dict[str, Any]]:
        """Every choice's delta, in order."""
        return [choice["delta"] for chunk in self.chunks for choice in chunk.get("choices", ())]


class Server:
    """A server with one parser name.

    Args:
        parser: The name, for tools and for reasoning.
    """

    def __init__(self, parser: str) -> None:
        self.parser = parser

    def stage(self, case: Case) -> Stage:
        """The server, with a tokenizer that knows the case's texts."""
        reasoning = None if case.request.get("no_reasoning_parser") else self.parser
        return Stage(Tokenizer(case.marker_ids, case.decode), self.parser, reasoning)

    def stream(self, case: Case, mode: str = WHOLE, **body: Any) -> Answer:
        """Stream a case in one mode."""
        chunks = self.stage(case).stream(_body(case, body), self.script(case, mode))
        return Answer(chunks, gather(chunks))

    def stream_choices(self, case: Case, mode: str, count: int) -> list[Result]:
        """Stream a case with `n` choices, each saying the same; what a client makes of each."""
        script = self.script(case, mode)
        chunks = self.stage(case).stream(_body(case, {"n": count}), script._replace(choices=[*script.choices] * count))
        return [gather([_of_choice(chunk, index) for chunk in chunks]) for index in range(count)]

    def whole(self, case: Case, **body: Any) -> Result:
        """Answer a case without streaming."""
        return whole(self.stage(case).complete(_body(case, body), self.script(case, NON_STREAMING)))

    def script(self, case: Case, mode: str) -> Script:
        """What the engine says for a case in one mode."""
        return Script([case.deltas(mode)], case.finish, prompt_ids(case))

    def check(self, case: Case) -> None:
        """Run a case in every mode.

        Raises:
            AssertionError: It is wrong in one; the message says which and how.
        """
        for mode in case.modes:
            result = self.whole(case) if mode == NON_STREAMING else self.stream(case, mode).result
            if found := problems(case, result):
                raise AssertionError(f"{mode}: {'; '.join(found)}")


def _body(case: Case, further: Mapping[str, Any]) -> dict[str, Any]:
    fields = {**case.request, **further}
    for name in ("finish", "prompt", "no_reasoning_parser"):
        fields.pop(name, None)
    return {**fields, "tools": case.tools} if case.tools else fields


def _of_choice(chunk: Mapping[str, Any], index: int) -> dict[str, Any]:
    return {**chunk, "choices": [choice for choice in chunk.get("choices", ()) if choice["index"] == index]}
