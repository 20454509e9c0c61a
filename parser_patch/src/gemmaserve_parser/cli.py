"""The command `gemmaserve-parser`."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.replay import problems, read_cases, run_core

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gemmaserve_parser.replay import Case, Result

    Runner = Callable[[Case, str], Result]

_EXAMPLES = """examples:
  gemmaserve-parser replay cases.jsonl
      run every case in every mode, a line a case; exit 1 when one is wrong
  gemmaserve-parser replay cases.jsonl --model gemma4 --json
      the same for one model, as JSON
  gemmaserve-parser regressions --report /dev/termination-log
      check the parser that the installed vLLM hands out
  gemmaserve-parser drain --settle 5 --timeout 300
      wait until the vLLM server in this container has no request in flight
"""
_COMMANDS = {"regressions": "gemmaserve_parser.regressions", "drain": "gemmaserve_parser.drain"}
"""Commands that read their own arguments, imported only when they are asked for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0: all right; 1: something is wrong with a parser; 2: it could not run (argparse exits with 2 too).
    """
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    if arguments and arguments[0] in _COMMANDS:
        return int(import_module(_COMMANDS[arguments[0]]).main(arguments[1:]))
    options = _parser().parse_args(arguments)
    return _replay(options.file, model=options.model, as_json=options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gemmaserve-parser",
        description="Check the tool-call parsers for Gemma 4 and gpt-oss, and wait for a server's requests.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    replay = commands.add_parser(
        "replay",
        help="run recorded cases in every mode",
        description="Run each case of a file non-streaming, token by token, five characters a delta, all at once and"
        " in the case's own chunks: through the scanner alone and, where vLLM is installed, through its adapter.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument("file", type=Path, metavar="FILE", help="cases, one JSON object a line")
    replay.add_argument("--model", choices=["gemma4", "harmony"], help="only the cases of this model")
    replay.add_argument("--json", action="store_true", help="one JSON object instead of lines for people")
    commands.add_parser("regressions", help="check the parser that the installed vLLM hands out", add_help=False)
    commands.add_parser("drain", help="wait until a server has no request in flight", add_help=False)
    return parser


def _replay(path: Path, *, model: str | None, as_json: bool) -> int:
    runners = _runners()
    through = " and ".join(runners)
    if "adapter" not in runners:
        through += " only (vLLM is not installed here, so its adapter is not checked)"
    say: Callable[[str], None] = _silent if as_json else _say
    say(f"through the {through}")
    judged: list[dict[str, Any]] = []
    try:
        for case in read_cases(path, model=model):
            wrong = _judge(case, runners)
            judged.append({"id": case.id, "title": case.title, "model": case.model, "wrong": wrong})
            say(_line(judged[-1]))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"gemmaserve-parser: {error}\n")
        return 2
    right = sum(not each["wrong"] for each in judged)
    if as_json:
        summary = {"through": [*runners], "right": right, "total": len(judged), "cases": judged}
        sys.stdout.write(json.dumps(summary, ensure_ascii=False) + "\n")
    say(f"{right} of {len(judged)} right")
    return 0 if right == len(judged) else 1


def _runners() -> dict[str, Runner]:
    runners: dict[str, Runner] = {"core": run_core}
    if find_spec("vllm") is not None:
        runners["adapter"] = import_module("gemmaserve_parser.vllm_replay").run
    return runners


def _judge(case: Case, runners: dict[str, Runner]) -> list[str]:
    wrong: list[str] = []
    for through, run in runners.items():
        for mode in case.modes:
            try:
                found = problems(case, run(case, mode))
            except Exception as error:  # noqa: BLE001  (whatever a parser raises is what the case is there to show)
                found = [f"raised {error!r}"]
            wrong.extend(f"{through}, {mode}: {problem}" for problem in found)
    return wrong


def _line(judged: dict[str, Any]) -> str:
    verdict = "wrong" if judged["wrong"] else "right"
    return "\n      ".join([f"{verdict} {judged['id']:6} {judged['title']}", *judged["wrong"]])


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _silent(line: str) -> None:  # noqa: ARG001  (the same signature as _say)
    return None
