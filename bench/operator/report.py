"""How bench/operator shows its results: a column for each run, for a terminal and for docs/performance.md."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- operator:begin -->", "<!-- operator:end -->"


def _beside(what):
    def cell(results):
        ours, floor = results["operator"][what], results["floor"][what]
        return f"{ours:.1f} s; floor {floor:.1f} s; {ours / floor:.2f}x"

    return cell


def _own(what, unit, digits=0):
    return lambda results: f"{results['operator'][what]:.{digits}f}{unit}"


ROWS = {
    "gates at once": lambda results: str(results["gates"]),
    "gates of each": lambda results: "parser, live" if results["live"] else "parser",
    "applied to all children": _beside("children_s"),
    "applied to all Ready": _beside("ready_s"),
    "the machine's CPU to Ready": _beside("machine_cpu_s"),
    "the operator's CPU, each": lambda results: f"{results['operator']['cpu_s'] / results['resources'] * 1e3:.0f} ms",
    "writes until Ready, each": lambda results: f"{results['operator']['writes_to_ready'] / results['resources']:.1f}",
    "writes in 30 s at rest": _own("writes_at_rest", ""),
    "deleted child back, p50": _own("back_p50_ms", " ms"),
    "deleted child back, p99": _own("back_p99_ms", " ms"),
    "peak memory": _own("peak_mib", " MiB"),
    "cold start to converged": _own("cold_start_s", " s", 1),
    "writes of a cold start": _own("cold_start_writes", ""),
    "peak memory, cold start": _own("cold_start_peak_mib", " MiB"),
}


def as_text(results):
    lines = [f"{name:28}{cell(results)}" for name, cell in ROWS.items()]
    return "\n".join([f"{results['resources']} GemmaServes", *lines])


def as_table(runs):
    heads = [f"{results['resources']} GemmaServes" for results in runs]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(runs)}"]
    lines += [f"| {name} | {' | '.join(cell(results) for results in runs)} |" for name, cell in ROWS.items()]
    return "\n".join(lines)


def write_page(runs):
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE} has no {BEGIN} and {END}: put them where the table belongs")
    PAGE.write_text(f"{before}{BEGIN}\n{as_table(runs)}\n{END}{after}")
