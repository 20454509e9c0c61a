"""The command `gemmaserve-parser regressions`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import datetime, timezone
from fnmatch import fnmatch
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gemmaserve_parser.regressions.registry import HARMONY_PARSER, registered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gemmaserve_parser.regressions.registry import Regression

#: What the kubelet keeps of a termination message, in bytes.
_REPORT_BYTES = 4096
_REPORTED_FAILURES = 5
_MESSAGE_CHARACTERS = 300

#: The failure that stands for all when vLLM's server cannot be imported.
_IMPORT = "the_server_can_be_imported"

_EXAMPLES = """examples:
  gemmaserve-parser regressions
      all of them, against the parser that vLLM hands out for gemma4_atomic
  gemmaserve-parser regressions --report /dev/termination-log
      and leave a summary where Kubernetes looks for it
  gemmaserve-parser regressions -k '*strict*'
      some of them
  gemmaserve-parser regressions --parser openai
      those for gpt-oss, which vLLM reads under this name
"""


class Failure(NamedTuple):
    """A regression that failed, and what it expected and got."""

    name: str
    message: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0: all passed; 1: some failed; 2: they could not run.
    """
    options = _parser().parse_args(argv)
    chosen = [
        each for each in registered(options.parser) if options.k is None or fnmatch(each.name, _pattern(options.k))
    ]
    if options.list:
        _say("\n".join(f"{each.name}: {each.shows}" for each in chosen))
        return 0
    if not chosen:
        return _cannot_run(f"no regression matches {options.k!r}; --list shows their names")
    try:
        vllm = version("vllm")
    except PackageNotFoundError:
        return _cannot_run("vLLM is not installed here: run this in the serving image")
    started = datetime.now(timezone.utc)  # noqa: UP017  (datetime.UTC is 3.11's)
    failures = _run(chosen, options.parser, vllm)
    finished = datetime.now(timezone.utc)  # noqa: UP017
    failed = len(chosen) if _IMPORT in {failure.name for failure in failures} else len(failures)
    _say(f"{len(chosen) - failed} passed, {failed} failed")
    if options.report is not None:
        report = _report((options.parser, vllm), (len(chosen), failed), failures, (started, finished))
        try:
            options.report.write_text(report, encoding="utf-8")
        except OSError as error:
            return _cannot_run(f"the report could not be written: {error}")
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gemmaserve-parser regressions",
        description="Check the parser that the installed vLLM hands out, through vLLM's own chat server.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--parser", default="gemma4_atomic", metavar="NAME", help="the name (default: %(default)s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a summary as JSON, at most 4096 bytes")
    parser.add_argument("--list", action="store_true", help="list the regressions and run none")
    parser.add_argument("-k", metavar="PATTERN", help="only those whose name contains or matches PATTERN")
    return parser


def _pattern(given: str) -> str:
    return given if any(sign in given for sign in "*?[") else f"*{given}*"


def _run(chosen: Sequence[Regression], parser: str, vllm: str) -> list[Failure]:
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
    begun = time.monotonic()
    _say(f"importing vLLM {vllm}")
    try:
        module = "harmony_server" if parser == HARMONY_PARSER else "server"
        server = import_module(f"gemmaserve_parser.regressions.{module}").Server(parser)
    except Exception as error:  # noqa: BLE001  (whatever vLLM raises, there is no server with our parser then)
        _say(f"FAILED {_IMPORT}\n       {error!r}")
        return [Failure(_IMPORT, f"raised {error!r}")]
    _say(f"imported in {time.monotonic() - begun:.1f} s; running {len(chosen)} regressions against {parser}")
    failures: list[Failure] = []
    for regression in chosen:
        try:
            regression.run(server)
        except Exception as error:  # noqa: BLE001  (whatever a parser raises is what this is there to show)
            reason = str(error) if isinstance(error, AssertionError) else f"raised {error!r}"
            failures.append(Failure(regression.name, reason))
            _say(f"FAILED {regression.name}\n       {reason}")
        else:
            _say(f"passed {regression.name}")
    return failures


def _report(
    names: tuple[str, str], counts: tuple[int, int], failures: Sequence[Failure], times: tuple[datetime, datetime]
) -> str:
    (parser, vllm), (total, failed) = names, counts
    fields: dict[str, Any] = {
        "parser": parser,
        "parserVersion": version("gemmaserve-parser"),
        "vllmVersion": vllm.partition("+")[0],
        "passed": total - failed,
        "failed": failed,
        "total": total,
        "startedAt": _timestamp(times[0]),
        "finishedAt": _timestamp(times[1]),
        "failures": [
            {"name": failure.name, "message": failure.message[:_MESSAGE_CHARACTERS]}
            for failure in failures[:_REPORTED_FAILURES]
        ],
    }
    while len(report := json.dumps(fields, ensure_ascii=False).encode()) > _REPORT_BYTES:
        fields["failures"].pop()
    return report.decode()


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _cannot_run(reason: str) -> int:
    sys.stderr.write(f"gemmaserve-parser regressions: {reason}\n")
    return 2


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
