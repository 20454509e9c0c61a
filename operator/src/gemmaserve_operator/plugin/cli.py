"""The command line of `kubectl gemmaserve`."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from gemmaserve_operator.api import names
from gemmaserve_operator.plugin import history as past
from gemmaserve_operator.plugin.diagnosis import Collector, write_archive
from gemmaserve_operator.plugin.kubectl import Kubectl, KubectlError
from gemmaserve_operator.plugin.report import Report, build_report
from gemmaserve_operator.plugin.view import show_history, show_report, show_reports
from gemmaserve_operator.plugin.watch import watch_lines, watch_screen

_PODS: Final = "deployments.apps,pods"
_WIDE: Final = 1000
"""Columns of what is no terminal: nothing is wrapped or cut."""
_INTERRUPTED: Final = 130
_NO_FILES: Final = 4
"""kubectl's (cobra's) directive to its shell completion: these words and no file names."""

app = typer.Typer(
    name="kubectl gemmaserve",
    help="What a GemmaServe waits for, its history, and what you can have done about it.",
    epilog="Exit codes: 0 done, 1 the cluster says no (the message has the next step), 2 wrong usage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _names(incomplete: str) -> list[str]:
    """Names of GemmaServes, for shell completion."""
    try:
        found = Kubectl().list_all(all_namespaces=False)
    except KubectlError:
        return []
    return [name for item in found if (name := str(item["metadata"]["name"])).startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", help="The GemmaServe.", autocompletion=_names)]
Namespace = Annotated[str | None, typer.Option("-n", "--namespace", help="[default: the context's]")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.  [default: the current one]")]
Kubeconfig = Annotated[Path | None, typer.Option(help="Kubeconfig file.  [default: kubectl's]")]


def _examples(*lines: str) -> str:
    r"""An epilog that is shown line by line (`\b` is click's mark for that)."""
    return "\n".join(["\b", "Examples:", *(f"  kubectl gemmaserve {line}" for line in lines)])


def _kubectl(namespace: str | None, context: str | None, kubeconfig: Path | None) -> Kubectl:
    flags = (("context", context), ("kubeconfig", kubeconfig))
    return Kubectl(namespace, [f"--{name}={value}" for name, value in flags if value])


def _out() -> Console:
    """Standard output, as it is now; what is no terminal gets plain text."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDE)


def _say(words: str) -> None:
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(words)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What the cluster says no to becomes a message and exit code 1."""
    try:
        yield
    except (KubectlError, past.UndoError, OSError) as error:
        _say(f"kubectl gemmaserve: {error}")
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None


@app.command(epilog=_examples("status", "status gemma4", "status gemma4 --watch", "status --all-namespaces"))
def status(  # noqa: PLR0913 - options
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", autocompletion=_names)] = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    *,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Go on showing it until Ctrl-C.")] = False,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="Of all namespaces.")] = False,
) -> None:
    """Gates, pods, and what it waits for.

    Without a name a line for each GemmaServe.
    """
    kubectl = _kubectl(namespace, context, kubeconfig)

    def look() -> list[Report]:
        now = datetime.now(UTC)
        if name is not None:
            return [build_report(kubectl.get(name), kubectl.children(name, _PODS), now)]
        return [build_report(item, (), now) for item in kubectl.list_all(all_namespaces=all_namespaces)]

    def show(reports: Sequence[Report]) -> RenderableType:
        if name is not None:
            return show_report(reports[0])
        return show_reports(reports, with_namespace=all_namespaces) if reports else Text("No GemmaServes found.")

    with _told():
        out = _out()
        if not watch:
            out.print(show(look()))
        elif out.is_terminal:
            watch_screen(out, look, show)
        else:
            watch_lines(out, look)


@app.command(epilog=_examples("history gemma4"))
def history(name: Name, namespace: Namespace = None, context: Context = None, kubeconfig: Kubeconfig = None) -> None:
    """Past revisions, and which can be gone back to."""
    kubectl = _kubectl(namespace, context, kubeconfig)
    with _told():
        entries = past.read_history(kubectl.get(name), kubectl.children(name, past.SOURCES))
        _out().print(show_history(entries, datetime.now(UTC)))


@app.command(epilog=_examples("undo gemma4", "undo gemma4 --to 6f1c0b52aa", "undo gemma4 --dry-run"))
def undo(  # noqa: PLR0913 - options
    name: Name,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    *,
    to: Annotated[str | None, typer.Option(metavar="REVISION", help="Or its beginning.  [default: the last]")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be changed, and change nothing.")] = False,
) -> None:
    """Go back to an earlier revision.

    While a rollout is under way or has failed that is the one that serves, else the last one that was replaced. The
    spec is changed to what it was made from, and the rollout goes its usual road: the parser gate's verdict on the same
    image is reused. Replicas, rollout and routing stay as they are. Where Git holds the spec, change it there.
    """
    kubectl = _kubectl(namespace, context, kubeconfig)
    with _told():
        resource = kubectl.get(name)
        revision, source = past.choose(resource, kubectl.children(name, past.SOURCES), to)
        operations = past.build_undo(resource, source)
        if not operations:
            _say(f"{name} asks for what revision {revision} was made from already; nothing to do")
            return
        changed = ", ".join(op["path"].replace("/", ".").strip(".") for op in operations if op["op"] != "test")
        if not dry_run:
            kubectl.patch(name, operations)
        _say(f"{name} {'would go' if dry_run else 'goes'} back to revision {revision}: {changed}")
    _point_to_status(name, unless=dry_run)


@app.command(epilog=_examples("retry gemma4"))
def retry(name: Name, namespace: Namespace = None, context: Context = None, kubeconfig: Kubeconfig = None) -> None:
    """Try a failed revision again, or resolve its tag anew."""
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    with _told():
        _kubectl(namespace, context, kubeconfig).merge(
            name, {"metadata": {"annotations": {names.ANNOTATION_RETRY: moment}}}
        )
        _say(f"{name} is tried again")
    _point_to_status(name)


@app.command(epilog=_examples("pause gemma4"))
def pause(name: Name, namespace: Namespace = None, context: Context = None, kubeconfig: Kubeconfig = None) -> None:
    """Stop before the next step; what serves serves on."""
    _set_paused(_kubectl(namespace, context, kubeconfig), name, paused=True)


@app.command(epilog=_examples("resume gemma4"))
def resume(name: Name, namespace: Namespace = None, context: Context = None, kubeconfig: Kubeconfig = None) -> None:
    """Go on with a rollout that was paused."""
    _set_paused(_kubectl(namespace, context, kubeconfig), name, paused=False)


@app.command(epilog=_examples("diagnose gemma4", "diagnose gemma4 --output /tmp/gemma4.tar.gz"))
def diagnose(
    name: Name,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Archive to write.  [default: gemmaserve-NAME-TIME.tar.gz]")
    ] = None,
) -> None:
    """Collect all that helps into one archive, without secrets.

    The resource, its children, their events and logs, how containers ended, quotas, claims, nodes, and the operator's
    logs. Never Secrets; values of environment variables, keys in arguments and tokens are left out. Look into it
    before you give it away.
    """
    now = datetime.now(UTC)
    path = output or Path(f"gemmaserve-{name}-{now:%Y%m%d-%H%M%S}.tar.gz")
    with _told():
        with Console(stderr=True).status("Collecting") as progress:
            collector = Collector(
                _kubectl(namespace, context, kubeconfig), name, now, lambda what: progress.update(f"Collecting {what}")
            )
            found = collector.collect()
        write_archive(found, path, now)
        _say(found.files["SUMMARY.txt"])
        sys.stdout.write(f"{path}\n")


def complete(words: Sequence[str]) -> None:
    """Print what may come next on the command line, as kubectl asks its plugins for it."""
    *before, incomplete = words or [""]
    if not before:
        for command in app.registered_commands:
            callback = command.callback
            if callback is not None and callback.__name__.startswith(incomplete):
                sys.stdout.write(f"{callback.__name__}\t{(callback.__doc__ or '').splitlines()[0]}\n")
    elif len(before) == 1:
        sys.stdout.writelines(f"{name}\n" for name in _names(incomplete))
    sys.stdout.write(f":{_NO_FILES}\n")


def _set_paused(kubectl: Kubectl, name: str, *, paused: bool) -> None:
    with _told():
        kubectl.merge(name, {"spec": {"rollout": {"paused": paused}}})
        _say(f"{name} is paused: nothing new starts, what serves serves on" if paused else f"{name} goes on")
    _point_to_status(name, unless=paused)


def _point_to_status(name: str, *, unless: bool = False) -> None:
    if not unless:
        _say(f"kubectl gemmaserve status {name} --watch shows what it does")
