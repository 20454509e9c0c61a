"""The selftest's own server: as cheap as a server can be, so that the client is what is measured.

`python -m toolstream.edges.loopback` listens on a free port of 127.0.0.1, prints it, and ends when its standard input
does. The path says what to send: `/hold/STREAMS/CHUNKS/SECONDS/...` waits until so many streams are open (half a minute
at the most), then spreads the chunks over the seconds; `/burst/CHUNKS/...` sends them at once.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import cast

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: %s\r\n%s\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_LONGEST_WAIT = 30.0


def _event(delta: dict[str, object], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


_TEXT = _event({"content": "word "})
_END = (
    _event(
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_loopback",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"path": "notes.txt"}'},
                }
            ]
        }
    )
    + _event({}, "tool_calls")
    + b"data: [DONE]\n\n"
)


class _Crowd:
    """Streams that wait for each other."""

    def __init__(self) -> None:
        self._open = 0
        self._all_here = asyncio.Event()

    async def join(self, expected: int) -> None:
        self._open += 1
        if self._open >= expected:
            self._all_here.set()
        waiting = asyncio.ensure_future(self._all_here.wait())
        await asyncio.wait({waiting}, timeout=_LONGEST_WAIT)
        waiting.cancel()


class _Connection(asyncio.Protocol):
    def __init__(self, crowd: _Crowd) -> None:
        self._crowd = crowd
        self._received = b""
        self._transport: asyncio.Transport
        self._holding: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        if self._holding is not None:
            self._holding.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or len(body) < (int(length.group(1)) if length else 0):
            return
        self._received = b""
        _, kind, *numbers = head.split(b" ", 2)[1].decode().split("/")
        if kind == "hold":
            self._holding = asyncio.ensure_future(self._hold(int(numbers[0]), int(numbers[1]), float(numbers[2])))
        else:
            self._burst(int(numbers[0]))

    def _burst(self, chunks: int) -> None:
        body = _TEXT * chunks + _END
        self._transport.write(_HEAD % (b"keep-alive", b"content-length: %d\r\n" % len(body)) + body)

    async def _hold(self, streams: int, chunks: int, seconds: float) -> None:
        self._transport.write(_HEAD % (b"close", b""))
        await self._crowd.join(streams)
        for _ in range(chunks):
            self._transport.write(_TEXT)
            await asyncio.sleep(seconds / chunks)
        self._transport.write(_END)
        self._transport.close()


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    crowd = _Crowd()
    server = await loop.create_server(lambda: _Connection(crowd), "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
