"""`python -m localcluster.demo up|down`: what `make demo` and `make demo-down` run."""

import argparse
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

from localcluster.cluster import Cluster
from localcluster.demo import road
from localcluster.demo.watch import RoadError, Watch
from localcluster.errors import ClusterError
from localcluster.images.build import REPOSITORY, PushedImage, push_image
from localcluster.images.shell import CommandError
from localcluster.lifecycle import take_down
from localcluster.paths import cache_dir
from localcluster.tools import build, say

NAME = "demo"
GPUS = 2
STEPS = 6

_EXAMPLES = """examples:
  python -m localcluster.demo up       bring everything up; run again, it goes on from what is there
  python -m localcluster.demo down     remove the cluster; what was built stays in the cache"""


class Demo:
    """The demo on screen: numbered steps with times."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._step = 0

    def run(self) -> int:
        """Walk the road; returns the exit code."""
        cluster = self._cluster()
        serving, operator = self._images(cluster)
        self._heading("the operator", f"helm install, chart {road.CHART.name}")
        road.install_operator(cluster, operator)
        watch = self._resource(cluster, serving)
        return self._stream(cluster, watch)

    def _heading(self, title: str, note: str = "") -> None:
        self._step += 1
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        self._console.print(
            f"\n[bold]\\[{self._step}/{STEPS}] {title}[/bold]  [dim]{minutes}:{seconds:02} {note}[/dim]"
        )

    def _cluster(self) -> Cluster:
        self._heading("programs", "Kubernetes, CoreDNS and helm, built from Go modules")
        for module in ("kube", "coredns", "helm"):
            build(module)
        self._heading("a one-node Kubernetes", f"{GPUS} GPUs, which are only a number on the node")
        storage = cache_dir() / "registry"
        return Cluster.start(NAME, node=True, gpus=GPUS, registry_storage=storage, keep=True)

    def _images(self, cluster: Cluster) -> tuple[PushedImage, PushedImage]:
        self._heading("images", "vLLM for CPUs, our parser baked in and tested, a stand-in model; the operator")
        registry = cluster.registry
        if registry is None:
            raise ClusterError("the cluster has no registry, which needs a node; run `make demo-down` and try again")
        return push_image("demo", registry), push_image("operator", registry)

    def _resource(self, cluster: Cluster, serving: PushedImage) -> Watch:
        example = road.EXAMPLE.relative_to(REPOSITORY)
        self._heading("a GemmaServe", f"kubectl apply -f {example}, with the image that was just built")
        resource = road.read_example(serving)
        watch = Watch(cluster.kubectl, resource["metadata"]["name"], say=self._fact)
        road.apply(cluster, resource)
        look = road.wait_ready(watch)
        self._console.print()
        self._console.print(cluster.kubectl("get", "gemmaserves").rstrip())
        if any(piece.endpoints(watch.name) for piece in watch.looks[:1]):
            self._console.print("[dim]It served already; run `make demo-down` first to see the gate again.[/dim]")
        else:
            self._order(watch)
        self._console.print(f"[dim]{look.resource['status'].get('url')}[/dim]")
        return watch

    def _fact(self, seconds: float, key: str, text: str) -> None:
        kind, name = key.split(" ", 1)
        self._console.print(
            f"  [dim]{seconds:5.0f} s[/dim]  {kind:<13} {name:<40} {text}", highlight=False, soft_wrap=True
        )

    def _order(self, watch: Watch) -> None:
        table = Table(title="What came when: no endpoint before both gates had passed", title_justify="left", box=None)
        table.add_column("seconds", justify="right")
        table.add_column("first seen")
        order = road.order_of_events(watch)
        for what, seconds in order:
            table.add_row("never" if seconds is None else f"{seconds:.0f}", what)
        seen = [seconds for _, seconds in order if seconds is not None]
        if len(seen) < len(order) or seen != sorted(seen):
            table.title = "What came when: not in the order that the gates promise"
            self._console.print(table)
            raise RoadError("a step came before its cause; please report this with the lines above")
        self._console.print(table)

    def _stream(self, cluster: Cluster, watch: Watch) -> int:
        self._heading("a streamed answer with three tool calls", "through the Service")
        url = road.reach(cluster, watch.name)
        client = [sys.executable, "-m", "localcluster.demo.stream", "--url", url, "--model", "gemma-4"]
        code = subprocess.run(client, check=False, timeout=300).returncode
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        self._console.print(f"\n[bold]{'Done' if code == 0 else 'Failed'}[/bold] in {minutes}:{seconds:02}.")
        if code == 0:
            self._next(url)
        return code

    def _next(self, url: str) -> None:
        self._console.print("The cluster stays up. Try next:")
        for command in (
            f'eval "$(.venv/bin/localcluster env --name {NAME})"',
            "kubectl describe gemmaserve gemma4",
            f".venv/bin/python -m localcluster.demo.stream --url {url} --model gemma-4",
        ):
            self._console.print(f"  {command}")
        self._console.print("`make demo-down` removes it.")


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m localcluster.demo",
        description="The main job end to end on this machine: a cluster, the operator, a GemmaServe, streamed calls.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("up", "down"))
    action = parser.parse_args().action
    try:
        if action == "down":
            gone = take_down(NAME, say)
            say("the demo's cluster is gone" if gone else "there was no demo cluster")
            return 0
        return Demo(Console(highlight=False, soft_wrap=True)).run()
    except (RoadError, ClusterError, CommandError, FileNotFoundError, ConnectionError) as error:
        say(f"error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
