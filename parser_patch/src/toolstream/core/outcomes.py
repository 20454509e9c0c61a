"""The outcome classes of a load: each answer has one, the gravest that fits, and all that fit are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from toolstream.core import faults
from toolstream.core.printable import printable
from toolstream.core.rules.wire import http_trouble
from toolstream.core.strictjson import is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolstream.core.exchange import Answer, Call, Endpoint
    from toolstream.core.scenarios import ExpectedCall

OutcomeClass = Literal[
    "ok",
    "http_error",
    "timeout",
    "disconnect",
    "truncated",
    "no_tool_calls",
    "args_invalid_json",
    "wrong_arguments",
    "wrong_index",
    "id_changed",
    "missing_id",
    "missing_name",
    "missing_type",
    "split_call",
    "content_and_call_in_one_chunk",
]
CLASSES: Sequence[OutcomeClass] = get_args(OutcomeClass)
"""`ok`, then the others from the gravest to the lightest: what is lost altogether, then what a client would act on
wrongly, then what a strict client refuses."""

MEANINGS: dict[OutcomeClass, str] = {
    "ok": "each call in one delta, with id, type, name and whole arguments",
    "http_error": "a status other than 2xx, another content type, not the protocol, or an error in a stream",
    "timeout": "not finished within the time or the size that was allowed",
    "disconnect": "the connection could not be made, or broke",
    "truncated": "the answer ended before its end: cut by max_tokens, or no finish reason or last event",
    "no_tool_calls": "a whole answer without a tool call",
    "args_invalid_json": "arguments that are not the JSON of an object",
    "wrong_arguments": "other calls than the right ones, where those are known",
    "wrong_index": "an index that is missing or does not count up from 0",
    "id_changed": "a second id at an index",
    "missing_id": "a call whose first delta has no id",
    "missing_name": "a call whose first delta has no name",
    "missing_type": "a call whose first delta has no type `function`",
    "split_call": "a call in more than one delta or under more than one index",
    "content_and_call_in_one_chunk": "text and a call in one chunk",
}


class Classified(NamedTuple):
    """An answer's class.

    Attributes:
        outcome: The gravest class that fits.
        others: The other classes that fit.
        detail: The trouble in words, where the class alone does not tell.
    """

    outcome: OutcomeClass
    others: Sequence[OutcomeClass]
    detail: str


def classify(answer: Answer, expected: Sequence[ExpectedCall] | None) -> Classified:
    """The class of an answer to a request that wants tool calls.

    Args:
        answer: What came.
        expected: The right calls; None where they are not known.
    """
    found = {*_lost(answer), *_calls(answer, expected)}
    ranked = [each for each in CLASSES if each in found] or [CLASSES[0]]
    detail = answer.exchange.detail or http_trouble(answer) or (answer.faults[0].detail if answer.faults else "")
    return Classified(ranked[0], ranked[1:], printable(detail))


def _lost(answer: Answer) -> Iterator[OutcomeClass]:
    exchange = answer.exchange
    if exchange.trouble == "unreadable" or http_trouble(answer) or answer.faults:
        yield "http_error"
    if exchange.trouble == "timeout":
        yield "timeout"
    elif exchange.trouble == "disconnect":
        yield "disconnect"
    elif not answer.ended or exchange.unfinished or answer.finish_reason in {"length", "max_tokens", "incomplete"}:
        yield "truncated"
    elif not answer.calls:
        yield "no_tool_calls"


def _calls(answer: Answer, expected: Sequence[ExpectedCall] | None) -> Iterator[OutcomeClass]:
    if faults.spilled(answer.calls):
        yield "split_call"
    if expected is not None and answer.calls and not faults.calls_are(answer, expected):
        yield "wrong_arguments"
    for position, call in enumerate(answer.calls):
        yield from _call(call, position, answer.exchange.endpoint)


def _call(call: Call, position: int, endpoint: Endpoint) -> Iterator[OutcomeClass]:
    first = call.pieces[0]
    fits: Mapping[OutcomeClass, bool] = {
        "args_invalid_json": not is_object(call.arguments),
        "wrong_index": faults.index_is_wrong(call, position, endpoint),
        "id_changed": faults.id_change(call) is not None,
        "missing_id": not faults.has_text(first.id),
        "missing_name": not faults.has_text(first.name),
        "missing_type": first.type != "function",
        "split_call": len(faults.argument_pieces(call, endpoint)) > 1,
        "content_and_call_in_one_chunk": any(piece.beside_text for piece in call.pieces),
    }
    yield from (each for each, does in fits.items() if does)
