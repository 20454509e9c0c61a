"""The command line: `run` the operator, or show offline what it would do."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from gemmaserve_operator.runtime.logs import set_up_logging
from gemmaserve_operator.runtime.offline import InputError, show_plans
from gemmaserve_operator.runtime.settings import Settings, add_settings, read_settings

logger = logging.getLogger(__name__)

_COMMANDS: Final = ("run", "plan")
_EXAMPLES: Final = """\
examples:
  gemmaserve-operator run --log-format text            look after the cluster of KUBECONFIG
  gemmaserve-operator run --namespaces team-a,team-b   only two namespaces
  gemmaserve-operator plan -f gemmaserve.yaml          what would be done about it in an empty cluster
  kubectl get gs,jobs,deployments,services,pods,endpointslices,controllerrevisions -o yaml > dump.yaml
  gemmaserve-operator plan -f gemmaserve.yaml --state dump.yaml
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `gemmaserve-operator`; exits 0, 1 (failed, or the lease is lost) or 2 (usage)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0] not in _COMMANDS and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "run")
    options = _build_parser().parse_args(given)
    sys.exit(_plan(options) if options.command == "plan" else _run(read_settings(options)))


def _build_parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="gemmaserve-operator",
        description="Serves Gemma models with vLLM and lets no unverified tool-call parser near traffic.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=version("gemmaserve-operator"))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser("run", help="run the operator (default)", epilog=_EXAMPLES, formatter_class=raw)
    add_settings(run)
    plan = commands.add_parser(
        "plan", help="print what would be done and why, without a cluster", epilog=_EXAMPLES, formatter_class=raw
    )
    plan.add_argument("-f", "--file", type=Path, required=True, help="GemmaServes to plan for (YAML); - for stdin")
    plan.add_argument("--state", type=Path, help="what the cluster holds, as `kubectl get -o yaml` prints it")
    plan.add_argument("-o", "--output", choices=("text", "yaml"), default="text", help="(default: text)")
    return parser


def _plan(options: argparse.Namespace) -> int:
    try:
        sys.stdout.write(show_plans(options.file, options.state, output=options.output))
    except InputError as error:
        sys.stderr.write(f"gemmaserve-operator: {error}\n")
        return 2
    return 0


def _run(settings: Settings) -> int:
    set_up_logging(settings.log_level, settings.log_format)
    # Here, so that `plan` does not wait for kopf and the API client to be imported.
    from gemmaserve_operator.cluster.client import ApiError  # noqa: PLC0415
    from gemmaserve_operator.runtime.app import StartError, run  # noqa: PLC0415

    try:
        asyncio.run(run(settings))
    except (ApiError, OSError) as error:
        logger.critical("%s", error)
        return 1
    except Exception as error:
        # Kopf wraps what a start raises.
        if isinstance(error.__cause__, StartError):
            logger.critical("%s", error.__cause__)
        else:
            logger.exception("ended by an error")
        return 1
    return 0
