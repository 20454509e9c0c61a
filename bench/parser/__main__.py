"""What the parser costs a delta, beside vLLM's own in the same run.

    .venv/bin/python bench/parser                      # the scanner alone, in any Python
    .venv/bin/python bench/parser --vllm 0.33.0        # beside that vLLM's parser, in its environment
    .venv/bin/python bench/parser --vllm 0.33.0 --quick
    .venv/bin/python bench/parser --vllm 0.33.0 --write   # and put table and plot into docs/performance.md

Times are processor time of one thread, so that a busy machine does not count; each is the best of several rounds in
which the parsers take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import report
import scenarios
import sides

ROOT = Path(__file__).resolve().parents[2]
#: Tracing allocations takes many times as long as reading; one size of deltas shows it.
ALLOCATIONS_AT = 4


def rows(makers, found, *, allocations):
    """A row a scenario: microseconds, milliseconds and bytes by parser; printed as they come."""
    for scenario in found:
        row = {"kind": scenario.kind, "amount": scenario.amount, "size": scenario.size, "deltas": len(scenario.body)}
        for who, (us, closing) in measure.time_all(makers, scenario).items():
            row[who] = {"us": us, "closing_ms": closing}
            if allocations and scenario.size == ALLOCATIONS_AT:
                row[who]["kept"], row[who]["at_most"] = measure.allocated(makers[who], scenario)
        print(report.line(row), flush=True)
        yield row


def alone(options):
    """The scanner alone."""
    return {"rows": [*rows({"core": sides.core}, scenarios.scenarios(quick=options.quick), allocations=True)]}


def beside(options):
    """Everything that needs vLLM; runs in its environment."""
    from vllm.version import __version__ as vllm  # noqa: PLC0415

    makers, floor = sides.gemma4()
    measured = [*rows({**makers, "core": sides.core}, scenarios.scenarios(quick=options.quick), allocations=True)]
    measured += rows({"floor": floor}, [scenarios.content(scenarios.LENGTHS[0], 4)], allocations=False)
    harmony, encoding = sides.harmony()
    measured += rows(harmony, scenarios.of_tokens(encoding), allocations=False)
    return {
        "vllm": vllm,
        "rows": measured,
        "beginning_us": {who: measure.beginning(make) for who, make in makers.items()},
        "passing_on_us": sides.passing_on(),
    }


def in_environment(options):
    """Run `beside` with the Python of a vLLM version."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "parser"), str(ROOT / "tests" / "parser" / "harmony")]
    from vllm_env import environment  # noqa: PLC0415
    from vocabulary import encodings_base  # noqa: PLC0415

    place = environment(options.vllm)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        quick = ["--quick"] if options.quick else []
        command = [str(place.python), str(Path(__file__).parent), "--beside", "--json", str(file), *quick]
        variables = {**place.variables(), "TIKTOKEN_ENCODINGS_BASE": str(encodings_base())}
        print(f"importing vLLM {options.vllm}", file=sys.stderr, flush=True)
        subprocess.run(command, env=variables, cwd=ROOT, check=True)
        return json.loads(file.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", metavar="VERSION", help="measure beside this vLLM's parser, in its environment")
    parser.add_argument("--quick", action="store_true", help="a few rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="measure nothing, take FILE's figures")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md and docs/parser-speed.svg")
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write and not (options.vllm or options.source):
        parser.error("--write needs --vllm VERSION, or --from with the figures of such a run")
    if options.source:
        results = json.loads(options.source.read_text())
    elif options.beside:
        results = beside(options)
    else:
        results = {
            "python": platform.python_version(),
            "import_ms": measure.importing(),
            **(in_environment(options) if options.vllm else alone(options)),
            "load": os.getloadavg()[0],
        }
        print(f"importing the core: {results['import_ms']:.1f} ms")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.write:
        report.write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
