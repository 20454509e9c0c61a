"""One request's outcome as it came over the wire, and the answer read from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

Endpoint = Literal["chat", "responses", "messages"]
Trouble = Literal["timeout", "disconnect", "unreadable"]

CHAT: Endpoint = "chat"
RESPONSES: Endpoint = "responses"
MESSAGES: Endpoint = "messages"
PATHS: Mapping[Endpoint, str] = {
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    MESSAGES: "/v1/messages",
}

QUOTE_LIMIT = 400
"""Characters of a chunk that are quoted to people."""


class Chunk(NamedTuple):
    """The data of one server-sent event, or a whole body.

    Attributes:
        text: As it came.
        at: Seconds since the request was sent.
        event: The event's name, None where the stream names none.
    """

    text: str
    at: float
    event: str | None = None


@dataclass(frozen=True)
class Exchange:
    """What one request brought.

    Attributes:
        endpoint: Whose protocol it speaks.
        streaming: Whether a stream was asked for.
        status: The HTTP status; None when there was no answer.
        content_type: Without parameters, in lower case.
        chunks: What came, up to the end or the trouble.
        seconds: From sending the request to the end or the trouble.
        unfinished: An event that the end cut off.
        trouble: What ended it before its time: `timeout`, `disconnect`, or `unreadable` (not HTTP, a line over the
            limit); None when the server ended it.
        detail: The trouble in words.
    """

    endpoint: Endpoint
    streaming: bool
    status: int | None
    content_type: str
    chunks: Sequence[Chunk]
    seconds: float
    unfinished: str = ""
    trouble: Trouble | None = None
    detail: str = ""

    @property
    def first_chunk_seconds(self) -> float | None:
        """When the first chunk came; None when none did."""
        return self.chunks[0].at if self.chunks else None

    def quote(self, number: int | None) -> str:
        """A chunk for people, shortened in its middle; the unfinished rest or the last chunk for None."""
        if number is None:
            text = self.unfinished or (self.chunks[-1].text if self.chunks else "")
        else:
            text = self.chunks[number].text
        half = QUOTE_LIMIT // 2
        return text if len(text) <= QUOTE_LIMIT else f"{text[:half]} ... {text[-half:]}"


@dataclass(frozen=True)
class Piece:
    """One delta of a tool call, its fields as they came: None where absent or null.

    Attributes:
        chunk: Number of the chunk it came in.
        index: The call's index in its protocol (`index`, `output_index`); None where absent.
        id: The id that the client has to send back.
        type: `function` in chat completions.
        name: The tool's name.
        arguments: A piece of the arguments' text.
        beside_text: Whether content came in the same chunk.
    """

    chunk: int
    index: object
    id: object
    type: object
    name: object
    arguments: object
    beside_text: bool = False


@dataclass(frozen=True)
class Call:
    """One tool call: all pieces with its index, in order."""

    index: object
    pieces: Sequence[Piece]

    @cached_property
    def id(self) -> object:
        """The first id sent."""
        return next((piece.id for piece in self.pieces if piece.id is not None), None)

    @cached_property
    def name(self) -> object:
        """The first name sent."""
        return next((piece.name for piece in self.pieces if piece.name is not None), None)

    @cached_property
    def arguments(self) -> str:
        """The arguments' text, joined."""
        return "".join(piece.arguments for piece in self.pieces if isinstance(piece.arguments, str))


class Fault(NamedTuple):
    """A chunk that its protocol does not allow.

    Attributes:
        kind: `json` (no JSON object), `shape` (a field of the wrong type), `error` (the server reports an error inside
            a stream), `order` (an event where its protocol does not have it).
        chunk: Its number.
        detail: What is wrong with it.
    """

    kind: Literal["json", "shape", "error", "order"]
    chunk: int
    detail: str


@dataclass
class Answer:
    """What a client reads from an exchange.

    Attributes:
        exchange: Where it came from.
        calls: In the order in which they began.
        text: The content.
        reasoning: The reasoning.
        finish_reason: As the protocol says it: `finish_reason`, `status`, `stop_reason`.
        ended: Whether the protocol's own end was seen: a finish reason and `[DONE]`, `response.completed`,
            `message_stop`; without streaming, a finish reason.
        faults: Chunks that cannot be.
        token_ids: For each chunk the ids that vLLM gave with it (`return_token_ids`).
    """

    exchange: Exchange
    calls: list[Call] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    ended: bool = False
    faults: list[Fault] = field(default_factory=list)
    token_ids: list[list[int]] = field(default_factory=list)

    @property
    def pieces(self) -> list[Piece]:
        """Every call's pieces in the order in which they came."""
        return sorted((piece for call in self.calls for piece in call.pieces), key=lambda piece: piece.chunk)


def gather_calls(pieces: Sequence[Piece]) -> list[Call]:
    """Pieces by index; a piece without one is a call of its own, since nothing says where it belongs."""
    found: dict[object, list[Piece]] = {}
    for number, piece in enumerate(pieces):
        key = ("no index", number) if isinstance(piece.index, (type(None), list, dict)) else piece.index
        found.setdefault(key, []).append(piece)
    return [Call(pieces[0].index, tuple(pieces)) for pieces in found.values()]
