"""The command line: `localcluster up|down|status|env|build`."""

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from localcluster.cluster import Cluster
from localcluster.errors import ClusterError
from localcluster.launcher import recorded
from localcluster.lifecycle import take_down
from localcluster.state import cluster_names, load_state
from localcluster.tools import MODULES, build, say

_EXAMPLES = """examples:
  localcluster up --gpus 2            a cluster with a node that says it has two GPUs (root)
  localcluster up --no-node           API server, etcd and controllers only (any user)
  eval "$(localcluster env)"          kubectl and KUBECONFIG for the cluster in this shell
  localcluster status                 what runs, of every cluster
  localcluster down                   end it and remove everything it left
  localcluster build helm             build a tool; prints its folder
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0, or 1 with a message on stderr."""
    options = _parser().parse_args(arguments)
    try:
        run: int = options.run(options)
    except ClusterError as error:
        say(f"localcluster: {error}")
        return 1
    except KeyboardInterrupt:
        say("localcluster: interrupted; `localcluster up` goes on from here, `localcluster down` removes what there is")
        return 130
    return run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="localcluster",
        description="A one-node Kubernetes for demos and tests, built from Go modules.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("--name", default="default", help="which cluster (default: default)")

    up = commands.add_parser("up", parents=[named], help="start a cluster, or what does not run of it")
    up.add_argument("--gpus", type=int, default=0, help="how many nvidia.com/gpu the node says it has (default: 0)")
    up.add_argument("--no-node", action="store_true", help="API server, etcd and controllers only; needs no root")
    up.add_argument("--scheduler", action="store_true", help="run the scheduler without a node, for simulated ones")
    up.add_argument("--audit", action="store_true", help="log every request to the API server")
    up.add_argument("--controllers-qps", type=int, help="requests a second of controllers and scheduler each")
    up.add_argument(
        "--registry-storage", type=Path, help="a folder for the registry's images that outlives the cluster"
    )
    up.set_defaults(run=_up)

    down = commands.add_parser("down", parents=[named], help="end a cluster and remove everything it left")
    down.set_defaults(run=_down)
    status = commands.add_parser("status", help="what runs, of every cluster")
    status.set_defaults(run=_status)
    env = commands.add_parser("env", parents=[named], help="shell commands that set KUBECONFIG and PATH")
    env.set_defaults(run=_env)
    tools = commands.add_parser("build", help="build programs, unless the cache has them; prints their folders")
    tools.add_argument("modules", nargs="*", metavar="NAME", default=["kube"], help=f"of: {', '.join(MODULES)}")
    tools.set_defaults(run=_build)
    return parser


def _up(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    cluster = Cluster.start(
        options.name,
        node=not options.no_node,
        gpus=options.gpus,
        scheduler=True if options.scheduler else None,
        audit=options.audit,
        controllers_qps=options.controllers_qps,
        registry_storage=options.registry_storage,
        keep=True,
    )
    say(f"cluster {options.name!r} is ready ({time.monotonic() - begin:.0f} s)")
    if cluster.registry:
        say(f'push to its registry: buildah push --tls-verify=false IMAGE "docker://{cluster.registry}/NAME:TAG"')
    say(f'use it: eval "$(localcluster env --name {options.name})"')
    return 0


def _down(options: argparse.Namespace) -> int:
    gone = take_down(options.name, say)
    say(f"cluster {options.name!r} is removed" if gone else f"there is no cluster {options.name!r}")
    return 0


def _status(_: argparse.Namespace) -> int:
    rows = [("CLUSTER", "PROGRAM", "PID", "RUNS", "LOG")]
    broken = False
    for name in cluster_names():
        state = load_state(name)
        if state is None:
            rows.append((name, "-", "-", f"broken: localcluster down --name {name}", "-"))
            broken = True
            continue
        for program, process in recorded(state.folder).items():
            log = state.folder / "logs" / f"{program}.log"
            rows.append((name, program, str(process.pid), "yes" if process.alive() else "no", str(log)))
            broken |= not process.alive()
    if len(rows) == 1:
        say("no clusters; `localcluster up` starts one")
        return 0
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if broken:
        say("some of it does not run: `localcluster up` with the same options starts it again")
    return int(broken)


def _env(options: argparse.Namespace) -> int:
    state = load_state(options.name)
    if state is None:
        raise ClusterError(f"there is no cluster {options.name!r}; `localcluster up --name {options.name}` starts one")
    print(f"export KUBECONFIG={shlex.quote(str(state.folder / 'kubeconfig'))}")
    print(f'export PATH={shlex.quote(state.programs)}:"$PATH"')
    return 0


def _build(options: argparse.Namespace) -> int:
    for name in options.modules:
        print(build(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
