"""Brings clusters up and takes them down. Both can be called at any time, in any state, and finish the work."""

import http.client
import shutil
import ssl
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path

from localcluster.certs import Authority
from localcluster.controlplane import control_plane, write_control_plane
from localcluster.errors import ClusterError
from localcluster.launcher import Launcher, recorded
from localcluster.network import free_ports
from localcluster.paths import Report, clusters_dir, locked
from localcluster.processes import Process
from localcluster.state import Options, State, cluster_names, folder_of, load_state
from localcluster.tools import kubernetes_dir

_PORTS = ("apiserver", "etcd", "etcd-peer")
_API_TIMEOUT = 180.0


def bring_up(name: str, options: Options, owner: Process | None, report: Report) -> State:
    """Start what does not run of a cluster, and wait until it can be used.

    Raises:
        ClusterError: a program is missing or failed, or the cluster exists with other options.
    """
    folder_of(name)  # refuses what is not a name before anything is built
    remove_orphans(report)
    programs = kubernetes_dir(needed_programs(options), report)
    with _lock(name, report):
        state = load_state(name)
        if state and state.options != options:
            raise ClusterError(f"cluster {name!r} exists with other options; `localcluster down --name {name}` first")
        if state is None:
            _remove(name)  # what a start left that died before it wrote down its state
            state = _settle(name, options, programs, owner)
        _start(state, report)
    return state


def take_down(name: str, report: Report) -> bool:
    """End everything of a cluster and remove it; False if there was nothing."""
    with _lock(name, report):
        return _remove(name)


def remove_orphans(report: Report) -> None:
    """Remove the clusters whose owner died before it could do so itself."""
    for name in cluster_names():
        state = load_state(name)
        if state and state.owner and not state.owner.alive():
            report(f"removing cluster {name!r}, whose owner has died")
            take_down(name, report)


def needed_programs(options: Options) -> list[str]:
    """The Kubernetes programs that a cluster with these options runs or that its user calls."""
    programs = ["etcd", "kube-apiserver", "kubectl"]
    programs += ["kube-controller-manager"] if options.controllers else []
    programs += ["kube-scheduler"] if options.scheduler else []
    return programs


def api_answers(state: State, path: str = "/readyz") -> bool:
    """Whether the API server answers a GET of `path` by the cluster's admin with success."""
    certs = state.folder / "certs"
    try:
        context = ssl.create_default_context(cafile=certs / "ca.crt")
        context.load_cert_chain(certs / "admin.crt", certs / "admin.key")
        with urllib.request.urlopen(state.server + path, context=context, timeout=5):  # noqa: S310 - always https
            return True
    except (OSError, http.client.HTTPException):
        return False


def _lock(name: str, report: Report) -> AbstractContextManager[None]:
    return locked(
        clusters_dir() / ".locks" / name, lambda: report(f"another process works on cluster {name!r}; waiting for it")
    )


def _settle(name: str, options: Options, programs: Path, owner: Process | None) -> State:
    folder_of(name).mkdir(parents=True, mode=0o700)
    ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
    state = State(name, options, str(programs), ports, owner=owner)
    state.save()
    return state


def _start(state: State, report: Report) -> None:
    write_control_plane(state, Authority(state.folder / "certs"))
    launcher = Launcher(state.folder, report)
    started = launcher.ensure(control_plane(state))
    if started:
        report(f"cluster {state.name!r}: started {', '.join(started)}")
    launcher.wait("an API server that is ready", lambda: api_answers(state), "kube-apiserver", _API_TIMEOUT)
    if state.options.controllers:
        # The controller manager makes it for each namespace, and pods need it.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        launcher.wait("controllers that work", lambda: api_answers(state, account), "kube-controller-manager")


def _remove(name: str) -> bool:
    folder = folder_of(name)
    if not folder.is_dir():
        return False
    for process in recorded(folder).values():
        process.stop(grace=0)  # nothing of what they would still write down is kept
    shutil.rmtree(folder)
    return True
