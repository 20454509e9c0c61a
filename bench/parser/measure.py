"""Times and allocations of a parser that takes deltas."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc

#: A body shorter than this is read by several parsers in a row, each new, so that a time is not one of microseconds.
LEAST_DELTAS = 2000
ROUNDS = 5


def time_all(makers, scenario):
    """For each parser the best of some rounds, in turn: microseconds a delta, and milliseconds of the closing deltas.

    Processor time of this thread, so that other processes do not count.
    """
    best = dict.fromkeys(makers, (math.inf, math.inf))
    for _ in range(ROUNDS):
        for who, make in makers.items():
            best[who] = tuple(map(min, best[who], _once(make, scenario)))
    return best


def _once(make, scenario):
    copies = max(1, LEAST_DELTAS // len(scenario.body))
    steps = [_begun(make, scenario) for _ in range(copies)]
    gc.collect()
    gc.disable()
    started = time.thread_time()
    for step in steps:
        for text, ids in scenario.body:
            step(text, ids)
    ended = time.thread_time()
    for step in steps:
        for text, ids in scenario.closing:
            step(text, ids)
    closed = time.thread_time()
    gc.enable()
    return (ended - started) / copies / len(scenario.body) * 1e6, (closed - ended) / copies * 1e3


def _begun(make, scenario):
    step = make()
    for text, ids in scenario.before:
        step(text, ids)
    return step


def allocated(make, scenario, *, most=1000):
    """Bytes a delta, on average: those it leaves allocated (a text that is kept, too), and those at most meanwhile."""
    tracemalloc.start()
    step = _begun(make, scenario)
    deltas = scenario.body[-most:]
    for text, ids in scenario.body[:-most]:
        step(text, ids)
    at_most = 0
    first = tracemalloc.get_traced_memory()[0]
    for text, ids in deltas:
        its_own = "".join([*text])
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step(its_own, ids)
        at_most += tracemalloc.get_traced_memory()[1] - before
    del its_own
    kept = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    return kept / len(deltas), at_most / len(deltas)


def beginning(make):
    """Microseconds until a new parser has read its first delta: what a request pays once."""
    times = []
    for _ in range(200):
        started = time.thread_time()
        make()("a", [1000])
        times.append(time.thread_time() - started)
    return sorted(times)[len(times) // 2] * 1e6


def importing(module="gemmaserve_parser.core.gemma4"):
    """Milliseconds of importing the core in a new interpreter, its bytecode compiled as an installed package's is."""
    program = f"import time; t = time.thread_time(); import {module}; print(time.thread_time() - t)"
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        run = [
            subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
            for _ in range(8)
        ]
    return min(float(each.stdout) for each in run) * 1e3
