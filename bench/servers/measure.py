"""toolstream against one server: levels of load, the check, and a recorded fault that is replayed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from server import MODEL_NAME, say

from toolstream.core.exchange import CHAT
from toolstream.core.scenarios import SCENARIOS, Question

REQUEST_SECONDS = 600
LEVEL_SECONDS = 900
FEWEST = 100
"""Answers of a level at least: ten are too few for a 99th percentile."""


def load(url, level, mode):
    """One level's figures as `toolstream load --json` has them: `level` requests at a time, at least FEWEST in all."""
    say(f"  {level} at a time, {mode}")
    arguments = ["load", url, "-c", str(level), "-n", str(max(level, FEWEST)), "--mode", mode, "--json"]
    arguments += [f"--timeout={REQUEST_SECONDS}", f"--max-seconds={LEVEL_SECONDS}"]
    found = _toolstream(*arguments)["levels"][0]
    shown = ", ".join(f"{count} {name}" for name, count in found["outcomes"].items())
    say(f"    {shown}; {found['seconds']:.0f} s")
    return found


def check(url):
    """What `toolstream check --json` says."""
    say("  check")
    found = _toolstream("check", url, "--json", "--expect-calls", f"--timeout={REQUEST_SECONDS}")
    broken = [rule["name"] for rule in found["rules"] if rule["outcome"] == "failed"]
    say(f"    {len(broken)} rules broken: {', '.join(broken)}" if broken else "    no rule broken")
    return found


def record(url, work):
    """Send each scenario, streamed, through `toolstream proxy-record`, and replay what it wrote.

    Returns:
        How many answers were recorded, and the last line of `gemmaserve-parser replay`.
    """
    say("  proxy-record and replay")
    cases = work / "recorded.jsonl"
    cases.unlink(missing_ok=True)
    proxy = subprocess.Popen(
        [*_command("proxy-record"), url, "--listen", "127.0.0.1:0", "--out", str(cases)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        address = _listening(proxy)
        for scenario in SCENARIOS:
            _post(f"{address}/v1/chat/completions", Question(scenario, CHAT, True, "auto").body(MODEL_NAME))
    finally:
        proxy.terminate()
        proxy.communicate(timeout=30)
    return len(cases.read_text(encoding="utf-8").splitlines()), replay(cases)


def replay(cases):
    """The last line of `gemmaserve-parser replay`."""
    command = [str(Path(sys.executable).with_name("gemmaserve-parser")), "replay", str(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def _listening(proxy):
    said = ""
    for line in proxy.stderr:
        said += line
        if found := re.search(r"listening on (127\.0\.0\.1:\d+)", line):
            return f"http://{found[1]}"
    raise RuntimeError(f"toolstream proxy-record did not start:\n{said}")


def _post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
        response.read()


def _toolstream(*arguments):
    done = subprocess.run(
        [*_command(), *arguments], stdout=subprocess.PIPE, text=True, check=False, timeout=LEVEL_SECONDS + 120
    )
    if not done.stdout.strip():
        raise RuntimeError(f"toolstream {arguments[0]} gave nothing (exit code {done.returncode})")
    return json.loads(done.stdout)


def _command(*arguments):
    return [sys.executable, "-m", "toolstream", *arguments]
