"""What the commands share."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Coroutine, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from toolstream.edges.client import Server
from toolstream.edges.descriptors import TooFewDescriptors
from toolstream.edges.probe import Unreachable

Result = TypeVar("Result")

app = typer.Typer(
    name="toolstream",
    help="Does a server stream tool calls so that every client gets them whole?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

out = Console()
err = Console(stderr=True)

NOT_RUN = 2
"""Exit code: the command could not do its work."""


_SHOWN_EXTRA = 400


class EndpointName(Enum):
    """The protocols, as options name them."""

    chat = "chat"
    responses = "responses"
    messages = "messages"


class ProfileName(Enum):
    """The client profiles, as options name them."""

    openai = "openai"
    ai_sdk_02 = "ai-sdk-0.2"
    ai_sdk_2 = "ai-sdk-2"
    opencode = "opencode"
    litellm = "litellm"
    anthropic = "anthropic"


Url = Annotated[
    str, typer.Argument(metavar="URL", help="The server, e.g. http://localhost:8000; nothing else is contacted.")
]
Model = Annotated[str | None, typer.Option(help="The model to ask for.  [default: the server's first]")]
ApiKey = Annotated[
    str | None,
    typer.Option(envvar="TOOLSTREAM_API_KEY", show_envvar=True, help="Sent with every request, written nowhere."),
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that one request may take.")]
MaxSeconds = Annotated[float, typer.Option(min=1, help="Seconds that everything may take.")]
ExtraBody = Annotated[
    str,
    typer.Option(metavar="JSON", help="An object whose fields every request carries, too; the results name them."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output, in place of tables.")]


def server_of(url: str, api_key: str | None) -> Server:
    """The server, or a usage error that says how to write its URL."""
    server = Server(url, api_key)
    try:
        server.path("/")
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="URL") from error
    return server


def extra_fields(text: str) -> dict[str, Any]:
    """The fields of `--extra-body`, or a usage error that says how to write them."""
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    hint = "--extra-body"
    if not isinstance(fields, dict):
        example = '{"chat_template_kwargs": {"enable_thinking": true}}'
        raise typer.BadParameter(f"{text!r} is not a JSON object like {example}", param_hint=hint)
    if "stream" in fields:
        raise typer.BadParameter("whether requests stream is not a field to add: the command decides", param_hint=hint)
    return fields


def say_extra(fields: Mapping[str, Any]) -> None:
    """Say what requests carried beside what is built in, so that a result is never taken for a plain one."""
    if fields:
        text = json.dumps(dict(fields), ensure_ascii=False)
        shown = text if len(text) <= _SHOWN_EXTRA else f"{text[:_SHOWN_EXTRA]} ..."
        out.print(f"each request carried also: {shown}", markup=False, highlight=False, soft_wrap=True)


def run(work: Coroutine[Any, Any, Result], *, reraise: type[Exception] | tuple[()] = ()) -> Result:
    """Run a command's work; what keeps it from running, but for `reraise`, becomes one line and exit code 2."""
    try:
        return asyncio.run(work)
    except reraise:
        raise
    except (Unreachable, TooFewDescriptors, OSError) as error:
        give_up(str(error))


def give_up(words: str) -> NoReturn:
    """Say why nothing could be done, and exit with 2."""
    err.print(f"toolstream: {words}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(NOT_RUN)


def progress() -> Progress:
    """A progress bar on standard error, which leaves standard output to results; none where that is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


def print_json(value: object) -> None:
    """JSON on standard output, without rich: it would wrap lines."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def write(path: Path, text: str) -> None:
    """Write a file, or say that it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        give_up(f"cannot write {path}: {error.strerror}")


def utc_now() -> str:
    """RFC 3339, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
