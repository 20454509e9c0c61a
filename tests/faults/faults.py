"""What may go wrong between the operator and its API server, each thing a class of its own."""

import asyncio
import itertools
import json
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

REASONS: Final = {
    401: "Unauthorized",
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


_AT_ONCE: Final = 0.1
"""Watches that were open end too, so that new ones meet with the fault."""


class HangUpError(Exception):
    """Reset the connection instead of an answer."""


class EndWatchError(Exception):
    """End a watch here."""

    def __init__(self, last_words: bytes = b""):
        super().__init__()
        self.last_words = last_words


@dataclass(frozen=True)
class Seen:
    """A request as far as faults look at it."""

    method: str
    path: str
    query: dict[str, str]

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def watches(self) -> bool:
        return "watch" in self.query

    @property
    def lists(self) -> bool:
        return self.method == "GET" and not self.watches and "limit" in self.query


class Fault:
    """None at all; the others differ from it."""

    listens = True
    watch_seconds: float | None = None
    """How long a watch lasts."""
    last_words = b""
    """What a watch that ends so still says."""

    async def before(self, seen: Seen) -> web.Response | None:
        """An answer of its own; None passes the request on. May wait; may raise HangUpError."""

    async def after(self, seen: Seen, status: int, body: bytes) -> bytes:
        """The API server's answer as the client gets it. May raise HangUpError."""
        return body

    def event(self, seen: Seen, line: bytes) -> list[bytes]:
        """What a watch's line becomes. May raise EndWatchError."""
        return [line]


def error(code: int, **headers: str) -> web.Response:
    """What the API server says with an error."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body |= {"code": code, "reason": REASONS[code], "message": f"the fault proxy says {code}"}
    return web.json_response(body, status=code, headers=headers)


class Down(Fault):
    """Nobody listens; open connections are reset."""

    listens = False


@dataclass
class Slow(Fault):
    """Every answer takes longer."""

    seconds: float

    async def before(self, seen):
        await asyncio.sleep(self.seconds)


@dataclass
class Silent(Fault):
    """The first requests of a kind are taken and never answered."""

    writes: int
    lists: int
    left: dict[str, int] = field(init=False)

    def __post_init__(self):
        self.left = {"writes": self.writes, "lists": self.lists}

    async def before(self, seen):
        kind = "writes" if seen.writes else "lists" if seen.lists else None
        if kind and self.left[kind]:
            self.left[kind] -= 1
            await asyncio.sleep(600)


@dataclass
class LostAnswers(Fault):
    """Writes are carried out, and of each two answers the first is lost."""

    count: "itertools.count[int]" = field(default_factory=itertools.count)

    async def after(self, seen, status, body):
        if seen.writes and next(self.count) % 2 == 0:
            raise HangUpError
        return body


@dataclass
class Code(Fault):
    """An HTTP status for every request, or for one write in so many, at random: turns would fall into step."""

    code: int
    one_write_in: int | None = None
    dice: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self):
        if self.one_write_in is None:
            self.watch_seconds = _AT_ONCE

    async def before(self, seen):
        if self.one_write_in is not None and (not seen.writes or self.dice.randrange(self.one_write_in)):
            return None
        return error(self.code, **({"Retry-After": "1"} if self.code == 429 else {}))


class Nonsense(Fault):
    """Success with a page for people, as a proxy on the way may answer."""

    watch_seconds = _AT_ONCE

    async def before(self, seen):
        return web.Response(text="<html><body>Please log in</body></html>", content_type="text/html")


@dataclass
class HalfAnswers(Fault):
    """Every other answer ends in the middle, in a way that HTTP does not show."""

    count: "itertools.count[int]" = field(default_factory=itertools.count)

    async def after(self, seen, status, body):
        return body if next(self.count) % 2 else body[: len(body) // 2]


@dataclass
class CutWatches(Fault):
    """Watches end after so long."""

    watch_seconds: float
    last_words: bytes = b""


HALF_AN_EVENT: Final = b'{"type":"MODIFIED","object":{"kind":"Job","metadata":{"name":"gem'


def watch_error(code: int) -> bytes:
    """The event by which a watch ends that the API server cannot go on with."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
    status |= {"code": code, "reason": REASONS[code], "message": "the fault proxy ends this watch"}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


@dataclass
class DroppedEvents(Fault):
    """Watches do not tell of one event in so many, or of the events of one type."""

    one_in: int | None = None
    type: str | None = None
    count: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def event(self, seen, line):
        kind = json.loads(line)["type"]
        if kind == "BOOKMARK":
            return [line]
        dropped = kind == self.type or (self.one_in is not None and next(self.count) % self.one_in == 0)
        return [] if dropped else [line]


@dataclass
class LateEvents(Fault):
    """Every event is told twice, and again after the next one: older news after newer."""

    last: dict[str, bytes] = field(default_factory=dict)

    def event(self, seen, line):
        before = self.last.get(seen.path, b"")
        self.last[seen.path] = line
        return [line, line, *([before] if before else [])]


@dataclass
class StaleLists(Fault):
    """Lists are answered as they were when they were first asked for."""

    held: dict[str, dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))

    async def after(self, seen, status, body):
        if not seen.lists or status != 200:
            return body
        return self.held[seen.path].setdefault(str(sorted(seen.query.items())), body)
