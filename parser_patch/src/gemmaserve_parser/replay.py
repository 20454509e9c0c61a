"""Cases and their judgement: one model output, every way of cutting it, one right answer.

A case is one JSON object a line of a file:

| field | meaning |
|---|---|
| `id`, `title`, `model` | its name, what it shows, `gemma4` or `harmony` |
| `text` | what the model wrote, special tokens spelled out |
| `plain_text_spans` | ranges of `text` written with ordinary tokens although they read like a marker |
| `chunks` | a cutting to be tried beside the others |
| `tools`, `request` | the declared tools; other fields of the request; `finish`: how it ended; `prompt`: its tail |
| `expect` | tool calls, content, reasoning and finish_reason; white space around markup is free |
| `alt_expect` | another answer that would do: an object like `expect`; prose is for people and not judged |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gemmaserve_parser.core import gemma4
from gemmaserve_parser.core.events import Content, Event, Reasoning, ToolCall

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

NON_STREAMING = "non-streaming"
TOKENS = "token by token"
FIVE = "five characters"
WHOLE = "all at once"
CHUNKS = "chunks"

_FIRST_ORDINARY_ID = 1000
_ORDINARY_PIECE = re.compile(r"\s?\w{1,4}|.", re.DOTALL)


class Delta(NamedTuple):
    """What one engine step brings: text and the ids of the tokens whose first character is in it."""

    text: str
    token_ids: tuple[int, ...]


class Result(NamedTuple):
    """What a client would have received.

    Attributes:
        tool_calls: Name and arguments (JSON text) of each call, in the order of the indices.
        content: The whole content; None for none.
        reasoning: The whole reasoning; None for none.
        finish_reason: The last one sent.
        deltas_per_call: In how many deltas each call came; empty when nothing was streamed.
        faults: What else was wrong with the stream, in words: a second id for an index, a shared chunk.
    """

    tool_calls: Sequence[tuple[str, str]]
    content: str | None
    reasoning: str | None
    finish_reason: str
    deltas_per_call: Sequence[int] = ()
    faults: Sequence[str] = ()


class Scanner(Protocol):
    """What every model's scanner offers."""

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Read one delta."""

    def finish(self, reason: str | None = "stop") -> list[Event]:
        """End the answer."""


class Case:
    """One case, its text as tokens.

    A stand-in for a tokenizer: each marker one token, everything else a token for a few characters.

    Args:
        fields: The JSON object.

    Raises:
        ValueError: A needed field is missing or of the wrong type, or `chunks` do not join to `text`.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        for field, kind in (("id", str), ("model", str), ("text", str), ("expect", Mapping)):
            if not isinstance(fields.get(field), kind):
                raise ValueError(f"case {fields.get('id')}: {field!r} is missing or not a {kind.__name__}")  # noqa: TRY004
        self.id: str = fields["id"]
        self.title: str = fields.get("title") or ""
        self.model: str = fields["model"]
        self.text: str = fields["text"]
        self.tools: list[dict[str, Any]] = fields.get("tools") or []
        self.request: dict[str, Any] = fields.get("request") or {}
        self.expected = [each for each in (fields["expect"], fields.get("alt_expect")) if isinstance(each, Mapping)]
        self.chunks: list[str] | None = fields.get("chunks")
        if self.chunks is not None and "".join(self.chunks) != self.text:
            raise ValueError(f"case {self.id}: 'chunks' do not join to 'text'")
        #: Token ids of the markers by their text.
        self.marker_ids = {marker: id_ for id_, marker in enumerate(_markers(self.model), start=1)}
        self._texts = {id_: marker for marker, id_ in self.marker_ids.items()}
        self._ids: dict[str, int] = {}
        self.tokens = [*self._tokenize(fields.get("plain_text_spans") or [])]

    @property
    def modes(self) -> list[str]:
        """Every mode in which the case is to be right."""
        return [NON_STREAMING, TOKENS, FIVE, WHOLE, *([CHUNKS] if self.chunks else [])]

    @property
    def finish(self) -> str:
        """How the engine ended the answer: `stop` or `length`."""
        return str(self.request.get("finish") or "stop")

    @property
    def calls_wanted(self) -> bool:
        """Whether the request lets the model call tools."""
        return bool(self.tools) and self.request.get("tool_choice") != "none"

    def decode(self, token_id: int) -> str:
        """The text of one token."""
        return self._texts[token_id]

    def deltas(self, mode: str) -> list[Delta]:
        """The answer as the engine would give it in this mode; one delta when it is not streamed."""
        if mode == TOKENS:
            return [Delta(self._texts[id_], (id_,)) for id_ in self.tokens]
        if mode == FIVE:
            return self._cut([self.text[at : at + 5] for at in range(0, len(self.text), 5)])
        if mode == CHUNKS and self.chunks:
            return self._cut(self.chunks)
        return [Delta(self.text, tuple(self.tokens))]

    def _cut(self, texts: Sequence[str]) -> list[Delta]:
        starts = accumulate((len(self._texts[id_]) for id_ in self.tokens), initial=0)
        waiting = [*zip(starts, self.tokens, strict=False)][::-1]
        deltas: list[Delta] = []
        for text, end in zip(texts, accumulate(map(len, texts)), strict=True):
            ids: list[int] = []
            while waiting and waiting[-1][0] < end:
                ids.append(waiting.pop()[1])
            deltas.append(Delta(text, tuple(ids)))
        return deltas

    def _tokenize(self, plain_spans: Sequence[Sequence[int]]) -> Iterator[int]:
        marker = re.compile("|".join(map(re.escape, self.marker_ids)))
        position = 0
        for match in marker.finditer(self.text):
            if not any(start < match.end() and match.start() < end for start, end in plain_spans):
                yield from self._ordinary(self.text[position : match.start()])
                yield self.marker_ids[match.group()]
                position = match.end()
        yield from self._ordinary(self.text[position:])

    def _ordinary(self, text: str) -> Iterator[int]:
        for piece in _ORDINARY_PIECE.findall(text):
            id_ = self._ids.setdefault(piece, _FIRST_ORDINARY_ID + len(self._ids))
            self._texts[id_] = piece
            yield id_


def read_cases(path: Path, *, model: str | None = None) -> Iterator[Case]:
    """The cases of a file, or those of one model.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is no case; the message names it.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
                if model in {None, fields.get("model")}:
                    yield Case(fields)
            except (ValueError, AttributeError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error


def run_core(case: Case, mode: str) -> Result:
    """Run a case through the scanner alone."""
    scanner = _scanner(case)
    events: list[Event] = []
    for delta in case.deltas(mode):
        events += scanner.feed(delta.text, delta.token_ids)
    events += scanner.finish(case.finish)
    calls = [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)]
    return Result(
        calls,
        "".join(event.text for event in events if isinstance(event, Content)) or None,
        "".join(event.text for event in events if isinstance(event, Reasoning)) or None,
        finish_reason(case, calls=bool(calls)),
        [1] * len(calls),
    )


def finish_reason(case: Case, *, calls: bool) -> str:
    """The finish_reason that a client is told (rule 5; a forced named tool ends with `stop`, as OpenAI has it)."""
    if case.finish != "stop":
        return case.finish
    return "tool_calls" if calls and not isinstance(case.request.get("tool_choice"), Mapping) else "stop"


def problems(case: Case, result: Result) -> list[str]:
    """What is wrong with a result, in words; empty when it is one of the expected answers."""
    found = [*result.faults]
    if any(count != 1 for count in result.deltas_per_call):
        found.append(f"deltas a call: {[*result.deltas_per_call]}, not one each")
    differences = [_differences(expected, result) for expected in case.expected]
    return found + min(differences, key=len)


def _differences(expected: Mapping[str, Any], result: Result) -> list[str]:
    found: list[str] = []
    calls = [{"name": name, "arguments": _loads(arguments)} for name, arguments in result.tool_calls]
    if not _equal(calls, expected.get("tool_calls") or []):
        found.append(f"tool calls {json.dumps(calls, ensure_ascii=False)}")
    for field, text in (("content", result.content), ("reasoning", result.reasoning)):
        if _words(text) != _words(expected.get(field)):
            found.append(f"{field} {text!r}, not {expected.get(field)!r}")
    if result.finish_reason != expected.get("finish_reason"):
        found.append(f"finish_reason {result.finish_reason}, not {expected.get('finish_reason')}")
    return found


def _loads(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return f"no JSON: {arguments}"


def _equal(one: object, other: object) -> bool:
    """JSON equality: numbers by value, but `1`, `true` and `"1"` are three things."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _words(text: str | None) -> list[str]:
    return (text or "").split()


def _markers(model: str) -> Sequence[str]:
    if model == "gemma4":
        return gemma4.MARKERS
    if model == "harmony":
        markers: Sequence[str] = _harmony().MARKERS
        return markers
    raise ValueError(f"unknown model {model!r}: gemma4 and harmony are known")


def _scanner(case: Case) -> Scanner:
    if case.model == "harmony":
        scanner: Scanner = _harmony().HarmonyScanner(
            case.tools,
            calls=case.calls_wanted,
            first_call_only=case.request.get("parallel_tool_calls") is False,
            reasoning=case.request.get("include_reasoning") is not False,
            marker_ids=case.marker_ids,
            decode=case.decode,
        )
        return scanner
    return gemma4.Gemma4Scanner(
        case.tools,
        calls=case.calls_wanted,
        first_call_only=case.request.get("parallel_tool_calls") is False,
        reasoning=not case.request.get("no_reasoning_parser"),
        in_reasoning=gemma4.prompt_opens_reasoning(str(case.request.get("prompt") or "")),
        marker_ids=case.marker_ids,
        decode=case.decode,
    )


def _harmony() -> ModuleType:
    return import_module("gemmaserve_parser.core.harmony")
