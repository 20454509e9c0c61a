"""What the Gemma 4 parser costs, beside vLLM's own in the same run.

    .venv/bin/python bench/parser.py                      # the scanner alone
    .venv/bin/python bench/parser.py --vllm 0.33.0        # beside that vLLM's parser, in its environment
    .venv/bin/python bench/parser.py --vllm 0.33.0 --json results.json

Times are processor time, so that a busy machine does not blur them; each is the best of several rounds. A row's
last column is how many times cheaper a delta is for us.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

from gemmaserve_parser.core.gemma4 import MARKERS, Gemma4Scanner

ROOT = Path(__file__).resolve().parents[1]
IDS = {marker: number for number, marker in enumerate(MARKERS, start=1)}
ORDINARY = 1000
LINE = "    if (value[0] != 'x') { return \"no\"; }  // line\n"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
        },
    }
]
#: The peer is not asked for more than this: at 0.1 ms a delta it would take minutes.
PEER_DELTAS = 70_000


def cut(text, size):
    return [(text[start : start + size], [ORDINARY]) for start in range(0, len(text), size)]


def a_call(length, size):
    """One call with one string argument of `length` characters: opening deltas, the argument's, closing ones."""
    text = (LINE * (length // len(LINE) + 1))[:length]
    opening = [("<|tool_call>", [IDS["<|tool_call>"]]), *cut("call:write{content:", size), ('<|"|>', [IDS['<|"|>']])]
    closing = [('<|"|>', [IDS['<|"|>']]), ("}", [ORDINARY]), ("<tool_call|>", [IDS["<tool_call|>"]])]
    return opening, cut(text, size), closing


def calls(number, size):
    """Calls with an argument of 200 characters each, one after another."""
    deltas = [delta for part in a_call(200, size) for delta in part]
    return [], deltas * number, []


def prose(length, size):
    """An answer without any call; a comparison sign in it now and then."""
    text = "The answer is that a < b, so the list is sorted, and nothing else has to be done. " * (length // 80 + 1)
    return [], cut(text[:length], size), []


def scanner():
    one = Gemma4Scanner(TOOLS, marker_ids=IDS)
    return one.feed


def vllm_parsers():
    """Step functions of the parser that a server would use with our names, and of vLLM's own."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415
    from vllm.parser.gemma4 import Gemma4Parser  # noqa: PLC0415

    from gemmaserve_parser.vllm_stage import Stage, Tokenizer  # noqa: PLC0415

    texts = {number: marker for marker, number in IDS.items()}
    tokenizer = Tokenizer(IDS, lambda token_id: texts.get(token_id, "x"))
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "go"}], tools=TOOLS)
    ours = Stage(tokenizer, "gemma4_atomic", "gemma4_atomic").parser

    def stepping(parser_class):
        def make():
            parser = parser_class(tokenizer, request.tools)
            return lambda text, ids: parser.parse_delta(text, ids, request, prompt_token_ids=[], finished=False)

        return make

    return {"adapter": stepping(ours), "vllm": stepping(Gemma4Parser)}


def measure(make, parts, rounds):
    """Microseconds a delta of the middle part, and milliseconds of the closing one."""
    best = closing_best = math.inf
    for _ in range(rounds):
        opening, body, closing = parts
        step = make()
        for text, ids in opening:
            step(text, ids)
        gc.collect()
        gc.disable()
        started = time.thread_time()
        for text, ids in body:
            step(text, ids)
        ended = time.thread_time()
        for text, ids in closing:
            step(text, ids)
        closed = time.thread_time()
        gc.enable()
        best = min(best, (ended - started) / len(body) * 1e6)
        closing_best = min(closing_best, (closed - ended) * 1e3)
    return best, closing_best


def allocated(make, parts):
    """Kilobytes that stay allocated at most while the deltas are read."""
    deltas = [delta for part in parts for delta in part]
    step = make()
    tracemalloc.start()
    for text, ids in deltas:
        step(text, ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1024


def scenarios(quick):
    for length in (4096, 65536) if quick else (4096, 16384, 65536, 1 << 20):
        for size in (4,) if quick else (1, 4, 32):
            yield f"argument of {length // 1024:4} KB, deltas of {size:2}", a_call(length, size)
    for number in (1, 64) if quick else (1, 8, 64):
        yield f"{number:2} calls, deltas of 4", calls(number, 4)
    yield "content without calls, deltas of 4", prose(65536, 4)


def run(makers, *, quick):
    rows = []
    for name, parts in scenarios(quick):
        row = {"scenario": name, "deltas": sum(map(len, parts))}
        for who, make in makers.items():
            if who == "vllm" and row["deltas"] > PEER_DELTAS:
                continue
            rounds = 1 if row["deltas"] > PEER_DELTAS or who == "vllm" else 3
            row[f"{who}_us"], row[f"{who}_close_ms"] = measure(make, parts, rounds)
            if row["deltas"] < PEER_DELTAS:
                row[f"{who}_kb"] = allocated(make, parts)
        rows.append(row)
        print(line(row), flush=True)
    return rows


def line(row):
    def cell(key, form):
        return format(row[key], form) if key in row else "-".rjust(int(form.split(".")[0]))

    ours = row.get("adapter_us", row["core_us"])
    ratio = f"{row['vllm_us'] / ours:6.1f} x" if "vllm_us" in row else ""
    return "  ".join(
        [
            f"{row['scenario']:36}",
            *(cell(f"{who}_us", "8.2f") for who in ("core", "adapter", "vllm")),
            *(cell(f"{who}_close_ms", "8.2f") for who in ("core", "adapter", "vllm")),
            *(cell(f"{who}_kb", "8.0f") for who in ("core", "adapter", "vllm")),
            ratio,
        ]
    )


def import_ms():
    program = "import time; t = time.thread_time(); import gemmaserve_parser.core.gemma4; print(time.thread_time() - t)"
    seconds = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    return min(seconds) * 1e3


def in_environment(version, arguments):
    sys.path.insert(0, str(ROOT / "tests" / "parser"))
    from vllm_env import environment  # noqa: PLC0415

    place = environment(version)
    command = [str(place.python), __file__, "--beside", *arguments]
    return subprocess.run(command, env=place.variables(), cwd=ROOT, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", metavar="VERSION", help="measure beside this vLLM's parser, in its environment")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--quick", action="store_true", help="a few rows in a few seconds")
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.vllm:
        passed_on = [argument for argument in sys.argv[1:] if argument not in {"--vllm", options.vllm}]
        return in_environment(options.vllm, passed_on)
    makers = {"core": scanner, **(vllm_parsers() if options.beside else {})}
    milliseconds = import_ms()
    print(f"importing the core: {milliseconds:.1f} ms")
    print(f"{'':36}  {'microseconds a delta':^28}  {'closing a call, ms':^28}  {'allocated at most, KB':^28}")
    print(f"{'':36}  " + "  ".join(f"{who:>8}" for _ in range(3) for who in ("core", "adapter", "vllm")))
    rows = run(makers, quick=options.quick)
    if options.json:
        options.json.write_text(json.dumps({"import_ms": milliseconds, "rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
