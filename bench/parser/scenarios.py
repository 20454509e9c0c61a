"""What is measured: model outputs cut into deltas, each with the token ids that a tokenizer of Gemma 4 would give."""

from __future__ import annotations

import json
from typing import NamedTuple

from gemmaserve_parser.core.gemma4 import MARKERS

IDS = {str(marker): number for number, marker in enumerate(MARKERS, start=1)}
ORDINARY = 1000
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
        },
    }
]
SIZES = (1, 4, 32)
LENGTHS = tuple(kilobytes * 1024 for kilobytes in (4, 16, 64, 256, 1024))
CALLS = (1, 4, 16, 64)
#: So many deltas at the end of a long text are measured; what comes before them is read in deltas of FILL characters.
WINDOW = 4000
FILL = 1024

_LINE = "    if (value[0] != 'x') { return \"no\"; }  // line\n"
_PROSE = "The answer is that a < b, so the list is sorted, and nothing else has to be done. "


class Scenario(NamedTuple):
    """One row's one cell.

    `before` is read first and not measured, `body` is measured, `closing` too, apart.
    """

    kind: str
    amount: int
    size: int
    before: list
    body: list
    closing: list


def cut(text, size):
    return [(text[start : start + size], [ORDINARY]) for start in range(0, len(text), size)]


def marker(text):
    return (text, [IDS[text]])


def repeated(text, length):
    return (text * (length // len(text) + 1))[:length]


def long_text(kind, text, size, *, opening, closing=()):
    """A long text whose last deltas, WINDOW at most, are measured."""
    filled = max(0, len(text) - WINDOW * size)
    return Scenario(kind, len(text), size, opening + cut(text[:filled], FILL), cut(text[filled:], size), [*closing])


def argument(length, size):
    opening = [marker("<|tool_call>"), *cut("call:write{content:", size), marker('<|"|>')]
    closing = [marker('<|"|>'), ("}", [ORDINARY]), marker("<tool_call|>")]
    return long_text("argument", repeated(_LINE, length), size, opening=opening, closing=closing)


def content(length, size):
    return long_text("content", repeated(_PROSE, length), size, opening=cut("Well. ", size))


def reasoning(length, size):
    opening = [marker("<|channel>"), *cut("thought\n", size)]
    return long_text("reasoning", repeated(_PROSE, length), size, opening=opening, closing=[marker("<channel|>")])


def calls(number, size):
    """Whole calls with an argument of 200 characters each, one after another; all of it is measured."""
    one = argument(200, size)
    return Scenario("calls", number, size, [], [*one.before, *one.body, *one.closing] * number, [])


def of_tokens(encoding):
    """Harmony's: every delta one token; a call with a long argument, a long answer, and many calls."""
    from openai_harmony import Message, Role  # noqa: PLC0415

    def tokens(channel, text, recipient=None):
        message = Message.from_role_and_content(Role.ASSISTANT, text).with_channel(channel)
        if recipient:
            message = message.with_recipient(recipient).with_content_type("json")
        return [("x", [token]) for token in encoding.render(message)]

    def call(length):
        return tokens("commentary", json.dumps({"content": repeated(_LINE, length)}), "functions.write")

    started = 2  # the prompt has written the first <|start|>assistant
    for length in (LENGTHS[0], LENGTHS[2], LENGTHS[-1]):
        deltas = call(length)[started:]
        yield Scenario("harmony argument", length, 1, deltas[: -WINDOW - 1], deltas[-WINDOW - 1 : -1], deltas[-1:])
    yield Scenario("harmony calls", CALLS[-1], 1, [], (call(200) * CALLS[-1])[started:], [])
    deltas = tokens("final", repeated(_PROSE, LENGTHS[2]))[started:]
    yield Scenario("harmony content", LENGTHS[2], 1, deltas[: -WINDOW - 1], deltas[-WINDOW - 1 : -1], deltas[-1:])


def scenarios(*, quick):
    """All of them, the cells of a row together."""
    lengths = (LENGTHS[0], LENGTHS[2]) if quick else LENGTHS
    for size in SIZES:
        yield from (argument(length, size) for length in lengths)
        yield from (calls(number, size) for number in ((1, 64) if quick else CALLS))
        yield from (content(length, size) for length in ((LENGTHS[2],) if quick else (LENGTHS[0], LENGTHS[-1])))
        yield reasoning(LENGTHS[2], size)
