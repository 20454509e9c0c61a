"""What can be wrong with a call, decided once: the rules and the load's outcome classes both ask here."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from toolstream.core.exchange import CHAT
from toolstream.core.strictjson import NotJson, equal, is_object, loads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolstream.core.exchange import Answer, Call, Endpoint, Piece
    from toolstream.core.scenarios import ExpectedCall


def has_text(value: object) -> bool:
    """Whether this is a string with something in it."""
    return isinstance(value, str) and bool(value.strip())


def argument_pieces(call: Call, endpoint: Endpoint) -> Sequence[Piece]:
    """The deltas that count for atomicity.

    In chat completions each delta does. The other protocols open a call in an event of its own, so only the deltas
    with arguments do.
    """
    if endpoint == CHAT:
        return call.pieces
    return [piece for piece in call.pieces if piece.arguments]


def id_change(call: Call) -> Piece | None:
    """The first delta whose id is not the call's; None for none."""
    return next((piece for piece in call.pieces if piece.id is not None and piece.id != call.id), None)


def index_is_wrong(call: Call, position: int, endpoint: Endpoint) -> bool:
    """Whether the call that began as number `position` has an index that it cannot have.

    Chat completions count calls from 0. The other protocols count all items, so there any whole number will do.
    """
    if isinstance(call.index, bool) or not isinstance(call.index, int):
        return True
    return call.index < 0 or (endpoint == CHAT and call.index != position)


def spilled(calls: Sequence[Call]) -> bool:
    """Whether one call was spread over several indices.

    Told by its arguments: a call whose own are no object, but together with the following call's are one.
    """
    return any(
        not is_object(one.arguments) and not is_object(next_.arguments) and is_object(one.arguments + next_.arguments)
        for one, next_ in pairwise(calls)
    )


def calls_are(answer: Answer, expected: Sequence[ExpectedCall]) -> bool:
    """Whether the calls are these, in this order, arguments compared as JSON. A missing name is a fault of its own."""
    return len(answer.calls) == len(expected) and all(
        (call.name == wanted.name or not has_text(call.name)) and _arguments_are(call.arguments, wanted.arguments)
        for call, wanted in zip(answer.calls, expected, strict=True)
    )


def is_part(text: str, wanted: Mapping[str, object]) -> bool:
    """Whether arguments are a beginning of the wanted ones: no JSON, or some of them missing or cut short."""
    try:
        given = loads(text)
    except NotJson:
        return True
    if not isinstance(given, dict):
        return True
    begins = all(key in wanted and str(wanted[key]).startswith(str(value)) for key, value in given.items())
    return begins and not equal(given, dict(wanted))


def _arguments_are(text: str, wanted: Mapping[str, object]) -> bool:
    try:
        return equal(loads(text), dict(wanted))
    except NotJson:
        return False
