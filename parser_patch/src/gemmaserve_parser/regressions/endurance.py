"""Long arguments: what they cost, and that a stream does not fall silent (rules 7 and 10)."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gemmaserve_parser.regressions.cases import READ_FILE, case, expect
from gemmaserve_parser.regressions.registry import regression
from gemmaserve_parser.replay import TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gemmaserve_parser.regressions.server import Server
    from gemmaserve_parser.replay import Delta

_HEARTBEAT = "GEMMASERVE_HEARTBEAT_SECONDS"
_MEASURED = 1500
_ALLOWED_SECONDS = 6.0


@regression
def the_cost_of_a_delta_does_not_grow(server: Server) -> None:
    """A delta late in a long argument costs what one at its start costs."""
    words = "".join(f"{number:04d} " for number in range(9000))
    made = case(f'<|tool_call>call:read_file{{path:<|"|>{words}<|"|>}}<tool_call|>', tools=[READ_FILE])
    deltas = made.deltas(TOKENS)
    stage = server.stage(made)
    parser = stage.parser(stage.tokenizer, stage.adjusted({"tools": made.tools}).tools)
    request = stage.adjusted({"tools": made.tools})
    early, late = _costs(parser, request, deltas)
    # Four times leaves room for a busy machine; what rereads the argument is tens of times slower by then.
    if late > 4 * early:
        raise AssertionError(f"expected an even cost, got {early * 1e6:.0f} us a delta early and {late * 1e6:.0f} late")


@regression
def a_withheld_call_does_not_silence_the_stream(server: Server) -> None:
    """While a long call is withheld, empty deltas go out, and none when they are turned off."""
    made = case(f'<|tool_call>call:read_file{{path:<|"|>{"word " * 50}<|"|>}}<tool_call|>')
    for seconds, beats in (("0.000001", True), ("0", False)):
        with _environment(_HEARTBEAT, seconds):
            answer = server.stream(made, TOKENS)
        empty = [delta for delta in answer.deltas[1:-1] if not any(delta.values())]
        expect(bool(empty), beats, f"empty deltas with a heartbeat of {seconds} s")
        expect(len(answer.calls), 1, f"deltas with a call with a heartbeat of {seconds} s")


def _costs(parser: object, request: object, deltas: Sequence[Delta]) -> tuple[float, float]:
    """Seconds a delta, early and late, of this thread's own time: the gate's node may be busy with other things."""
    parse = parser.parse_delta  # type: ignore[attr-defined]
    further = {"finished": False} if "finished" in parse.__code__.co_varnames else {}
    begun = time.thread_time()
    times: list[float] = []
    for delta in deltas[:-1]:
        start = time.thread_time()
        parse(delta.text, [*delta.token_ids], request, None, **further)
        times.append(time.thread_time() - start)
        if time.thread_time() - begun > _ALLOWED_SECONDS:
            raise AssertionError(f"expected {len(deltas)} deltas in {_ALLOWED_SECONDS:.0f} s, got {len(times)}")
    early, late = times[100 : 100 + _MEASURED], times[-_MEASURED:]
    return sorted(early)[len(early) // 2], sorted(late)[len(late) // 2]


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
