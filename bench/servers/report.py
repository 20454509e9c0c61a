"""The results as tables, and their place in the pages."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from toolstream.core.rules import PROFILES

DOCS = Path(__file__).resolve().parents[2] / "docs"
_NONE = "-"


def machine_words(made):
    """Where and when: both sections begin with it."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    name = cpu[1] if cpu else platform.processor()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"Measured {made} on {os.cpu_count()} cores of {name}; load average at the end {load}."


def load_section(results, machine):
    """Loads: a row a server and level."""
    rows = [
        "| vLLM, parser | at a time | streams right | what was wrong | whole answers right | first chunk p50 / p99 "
        "| whole stream p50 / p99 | streams/s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for stream, whole in result["levels"]:
            cells = [
                result["name"], str(stream["concurrency"]), _right(stream), _classes(stream), _right(whole),
                _seconds(stream["firstChunkSeconds"]), _seconds(stream["totalSeconds"]),
                f"{stream['requestsPerSecond']:.0f}",
            ]  # fmt: skip
            rows.append("| " + " | ".join(cells) + " |")
    recorded = [
        f"- {result['name']}: {count} answers recorded; replayed with ours: {words}"
        for result in results
        for count, words in [result["recorded"]]
    ]
    proxy = "Through `toolstream proxy-record`, each scenario of `toolstream check` streamed once:"
    return "\n".join([machine, "", *rows, "", proxy, "", *recorded])


def check_section(results, machine):
    """Checks: a row a server, a column a client profile; then each broken rule."""
    head = ["vLLM, parser", "requests passed", *(f"`{profile}`" for profile in PROFILES)]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for result in results:
        found = result["check"]
        passed = sum(each["outcome"] == "passed" for each in found["questions"])
        broken = [rule for rule in found["rules"] if rule["outcome"] == "failed" and rule["severity"] == "must"]
        cells = [str(len([rule for rule in broken if profile in rule["breaks"]]) or _NONE) for profile in PROFILES]
        rows.append("| " + " | ".join([result["name"], f"{passed} of {len(found['questions'])}", *cells]) + " |")
    return "\n".join([machine, "", *rows, "", *_rules(results)])


def write(page, marker, text):
    """Put a text between `<!-- marker:begin -->` and `<!-- marker:end -->` of a page below docs/.

    Raises:
        ValueError: the page has no such markers.
    """
    path = DOCS / page
    old = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    if begin not in old or end not in old:
        raise ValueError(f"{path} has no {begin} and {end}: put them where the table belongs")
    before, rest = old.split(begin, 1)
    path.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")


def _rules(results):
    """Each rule that a server breaks: for whom it breaks, and of how many answers."""
    names = {rule["name"]: rule for result in results for rule in result["check"]["rules"] if rule["failed"]}
    if not names:
        return ["No rule is broken by any."]
    rows = ["| rule | breaks | " + " | ".join(result["name"] for result in results) + " |"]
    rows.append("|---|---|" + "---|" * len(results))
    for name, rule in names.items():
        cells = [_of(name, result["check"]) for result in results]
        should = "" if rule["severity"] == "must" else " (should)"
        profiles = "every client" if set(PROFILES) <= set(rule["breaks"]) else ", ".join(rule["breaks"])
        rows.append(f"| `{name}`{should} | {profiles} | " + " | ".join(cells) + " |")
    return ["Answers that break a rule, of those that it applies to:", "", *rows]


def _of(name, check):
    found = next((rule for rule in check["rules"] if rule["name"] == name), None)
    if found is None or not found["failed"]:
        return _NONE
    return f"{found['failed']} of {found['failed'] + found['passed']}"


def _right(level):
    return f"{level['ok']} of {level['done']}"


def _classes(level):
    others = [f"{count} `{name}`" for name, count in level["outcomes"].items() if name != "ok"]
    also = [f"{count} `{name}`" for name, count in level["faults"].items() if name not in level["outcomes"]]
    return ", ".join(others) + (f" (also {', '.join(also)})" if also else "") or _NONE


def _seconds(figures):
    return " / ".join("-" if figures[name] is None else f"{figures[name]:.2f} s" for name in ("p50", "p99"))
