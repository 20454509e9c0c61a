"""Real vLLM servers under load: our parser beside vLLM's own, in the same environment and the same run.

    .venv/bin/python bench/servers             # what docs/performance.md and docs/clients.md show
    .venv/bin/python bench/servers --no-docs --versions 0.32.0 --levels 10   # a first look
    .venv/bin/python bench/servers --no-docs --json results.json   # all figures

Each server runs the stand-in model (a tiny Gemma 4 whose words are given, see scripted.py) on a CPU and a loopback
port. `toolstream load` asks for three parallel calls, streaming and not; `toolstream check` asks each kind of question;
`toolstream proxy-record` records answers, and `gemmaserve-parser replay` replays them. The first run installs vLLM
(2 GB to fetch). It takes twenty minutes on two idle cores. Exit code 1: a request to a server of ours was not right.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "parser"))

import measure
import report
import vllm_env
from server import STREAMS, Kind, say, serving


def main():
    options = _options()
    # A context ends its server also when this process is asked to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work = vllm_env.cache() / "servers"
    work.mkdir(exist_ok=True)
    kinds = [Kind(version, ours) for version in options.versions for ours in (True, False)]
    results = []
    for kind in kinds:
        say(f"==> vLLM {kind.name}")
        with serving(kind, work) as url:
            results.append(_measured(kind, url, options.levels, work))
        if options.json:
            options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    machine = report.machine_words(time.strftime("%Y-%m-%d", time.gmtime()))
    sections = {
        ("performance.md", "servers"): report.load_section(results, machine),
        ("clients.md", "check"): report.check_section(results, machine),
    }
    for (page, marker), text in sections.items():
        if options.docs:
            report.write(page, marker, text)
        sys.stdout.write(f"{text}\n\n")
    return int(not all(_right(result) for result in results if result["ours"]))


def _measured(kind, url, levels, work):
    """Everything about one server. The check comes first: its requests are the server's first, and slowest."""
    found = {"name": kind.name, "version": kind.version, "ours": kind.ours, "check": measure.check(url)}
    found["recorded"] = measure.record(url, work)
    found["levels"] = [[measure.load(url, level, mode) for mode in ("stream", "whole")] for level in levels]
    return found


def _right(result):
    levels = [level for pair in result["levels"] for level in pair]
    return not result["check"]["failed"] and all(level["ok"] == level["planned"] for level in levels)


def _options():
    parser = argparse.ArgumentParser(
        prog="bench/servers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = sorted(vllm_env.WHOLE_VERSIONS, reverse=True)
    parser.add_argument("--versions", type=_list, default=known, help="vLLM versions [default: %(default)s]")
    parser.add_argument(
        "--levels", type=lambda text: [int(each) for each in text.split(",")], default=[10, 100, 500, STREAMS],
        help="requests at a time, at most %(const)s [default: %(default)s]".replace("%(const)s", str(STREAMS)),
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--no-docs", dest="docs", action="store_false", help="print the tables only")
    options = parser.parse_args()
    if unknown := set(options.versions) - set(known):
        parser.error(f"no vLLM {', '.join(unknown)}; there are {', '.join(known)}")
    if not all(1 <= level <= STREAMS for level in options.levels):
        parser.error(f"levels go from 1 to {STREAMS}: a server takes no more at a time")
    return options


def _list(text):
    return text.split(",")


if __name__ == "__main__":
    sys.exit(main())
