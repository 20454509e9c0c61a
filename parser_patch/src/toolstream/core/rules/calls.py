"""Rules of the tool calls' form: identity, index, arguments, and the deltas they come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolstream.core import faults
from toolstream.core.exchange import CHAT, RESPONSES
from toolstream.core.rules.rule import (
    AI_SDK_02,
    AI_SDK_2,
    ANTHROPIC,
    LITELLM,
    MUST,
    OPENAI,
    OPENCODE,
    SHOULD,
    Finding,
    Rule,
    everyone,
)
from toolstream.core.strictjson import is_object, parses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolstream.core.exchange import Answer, Call
    from toolstream.core.rules.rule import Check
    from toolstream.core.scenarios import Question

_AI_SDK = "vercel/ai, packages/openai-compatible, doStream of the chat language model"
_CONTRACT = "the parser contract, rule {}"


def _each_call(detail: str, broken: Callable[[Call], object]) -> Check:
    """A check that finds every call of which `broken` is true, at its first delta."""

    def check(answer: Answer, _question: Question) -> Iterator[Finding]:
        for call in answer.calls:
            if broken(call):
                yield Finding(f"call {call.index}: {detail}", call.pieces[0].chunk)

    return check


def _every_delta(answer: Answer, _question: Question) -> Iterator[Finding]:
    for piece in answer.pieces:
        lacking = [field for field in ("id", "type", "name") if not isinstance(getattr(piece, field), str)]
        if lacking:
            yield Finding(f"a delta of call {piece.index} without {', '.join(lacking)}", piece.chunk)


def _atomic(answer: Answer, _question: Question) -> Iterator[Finding]:
    for call in answer.calls:
        pieces = faults.argument_pieces(call, answer.exchange.endpoint)
        if len(pieces) > 1:
            yield Finding(f"call {call.index} comes in {len(pieces)} deltas", pieces[1].chunk)


def _early(answer: Answer, _question: Question) -> Iterator[Finding]:
    for call in answer.calls:
        so_far = ""
        for piece in call.pieces[:-1]:
            so_far += piece.arguments if isinstance(piece.arguments, str) else ""
            if so_far and so_far != call.arguments and parses(so_far):
                yield Finding(f"call {call.index}: the arguments are JSON already, and go on", piece.chunk)
                break


def _unique(answer: Answer, _question: Question) -> Iterator[Finding]:
    seen: set[object] = set()
    for call in answer.calls:
        if isinstance(call.id, str) and call.id in seen:
            yield Finding(f"call {call.index}: the id {call.id!r} again", call.pieces[0].chunk)
        seen.add(call.id if isinstance(call.id, str) else None)


def _stable(answer: Answer, _question: Question) -> Iterator[Finding]:
    for call in answer.calls:
        changed = faults.id_change(call)
        if changed is not None:
            yield Finding(f"index {call.index}: a second id", changed.chunk)


def _index(answer: Answer, _question: Question) -> Iterator[Finding]:
    for position, call in enumerate(answer.calls):
        if faults.index_is_wrong(call, position, answer.exchange.endpoint):
            yield Finding(f"index {call.index!r} where {position} is due", call.pieces[0].chunk)


def _apart(answer: Answer, _question: Question) -> Iterator[Finding]:
    for piece in answer.pieces:
        if piece.beside_text:
            yield Finding("content and a tool call in one chunk", piece.chunk)


RULES = (
    Rule(
        "call-has-id",
        MUST,
        {
            **everyone("the client cannot send the tool's result back"),
            AI_SDK_02: "throws: Expected 'id' to be a string",
            AI_SDK_2: "throws: Expected 'id' to be a string",
            OPENCODE: "the turn ends with: Expected 'id' to be a string",
        },
        _each_call("the first delta has no id", lambda call: not faults.has_text(call.pieces[0].id)),
        f"{_AI_SDK}; the public Harmony reproduction: non-null id",
    ),
    Rule(
        "call-has-name",
        MUST,
        {
            **everyone("the client does not know which tool to run"),
            AI_SDK_02: "throws: Expected 'function.name' to be a string",
            AI_SDK_2: "throws: Expected 'function.name' to be a string",
            OPENCODE: "the turn ends with: Expected 'function.name' to be a string (anomalyco/opencode#26412)",
        },
        _each_call("the first delta has no name", lambda call: not faults.has_text(call.pieces[0].name)),
        _AI_SDK,
    ),
    Rule(
        "call-has-type",
        MUST,
        {
            AI_SDK_02: "throws: Expected 'function' type",
            OPENAI: "typed clients find None where `function` is promised",
        },
        _each_call("the first delta has no type `function`", lambda call: call.pieces[0].type != "function"),
        f"{_AI_SDK}, release 0.2",
        endpoints=(CHAT,),
    ),
    Rule(
        "delta-complete",
        MUST,
        {AI_SDK_02: "strict clients validate each delta alone and refuse one without id, type or name"},
        _every_delta,
        _CONTRACT.format(1),
        endpoints=(CHAT,),
        streaming=True,
    ),
    Rule(
        "one-delta-per-call",
        MUST,
        {
            AI_SDK_2: "finalises a call as soon as its arguments parse, whatever follows",
            OPENCODE: "finalises a call as soon as its arguments parse, whatever follows",
            LITELLM: "has to join fragments, and has joined them wrongly",
            AI_SDK_02: "one lost or misplaced fragment spoils the arguments of the call",
        },
        _atomic,
        _CONTRACT.format(1),
        streaming=True,
    ),
    Rule(
        "no-early-json",
        MUST,
        {
            AI_SDK_2: "runs the tool with the first part of its arguments",
            OPENCODE: "runs the tool with the first part of its arguments",
        },
        _early,
        _AI_SDK,
        endpoints=(CHAT,),
        streaming=True,
    ),
    Rule(
        "id-unique",
        MUST,
        everyone("two calls with one id: the second result overwrites the first"),
        _unique,
        _CONTRACT.format(1),
    ),
    Rule(
        "id-stable",
        MUST,
        everyone("a second id at an index becomes a second call, or is dropped with its arguments"),
        _stable,
        _CONTRACT.format(1),
        streaming=True,
    ),
    Rule(
        "index-counts-up",
        MUST,
        {
            OPENAI: "fragments are joined by index: arguments end up in another call",
            AI_SDK_02: "requires a number in every delta",
            AI_SDK_2: "calls are kept in an array by index: a gap is an undefined call",
            OPENCODE: "calls are kept in an array by index: a gap is an undefined call",
        },
        _index,
        _CONTRACT.format(1),
        streaming=True,
    ),
    Rule(
        "arguments-are-an-object",
        MUST,
        everyone("the tool cannot be run: its arguments are not the JSON of an object"),
        _each_call("the arguments are not a JSON object", lambda call: not is_object(call.arguments)),
        f"{_CONTRACT.format(4)}; the public Harmony reproduction: valid JSON",
    ),
    Rule(
        "arguments-not-empty",
        MUST,
        {
            AI_SDK_02: "never finalises a call whose arguments stay empty",
            AI_SDK_2: "never finalises a call whose arguments stay empty",
            OPENCODE: "never finalises a call whose arguments stay empty",
            LITELLM: "hands on a call that agents drop",
        },
        _each_call("the arguments are an empty string, not {}", lambda call: not call.arguments.strip()),
        _CONTRACT.format(4),
        endpoints=(CHAT, RESPONSES),
    ),
    Rule(
        "content-apart-from-call",
        MUST,
        {
            LITELLM: "reads one of the two and loses the other",
            ANTHROPIC: "the translation to content blocks has to cut one block short",
            OPENCODE: "text may land behind the call it introduces",
        },
        _apart,
        _CONTRACT.format(6),
        endpoints=(CHAT,),
        streaming=True,
    ),
    Rule(
        "id-is-fresh",
        SHOULD,
        everyone("ids that repeat over turns (`call_0`) mix up results in long sessions"),
        _each_call(
            "an id too short to be unique", lambda call: isinstance(call.id, str) and 0 < len(call.id.strip()) < 8
        ),
        _CONTRACT.format(1),
    ),
)
