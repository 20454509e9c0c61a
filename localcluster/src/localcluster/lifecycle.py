"""Brings clusters up and takes them down. Both can be called at any time, in any state, and finish the work."""

import dataclasses
import datetime as dt
import http.client
import json
import platform
import shutil
import ssl
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from localcluster import node, sandbox
from localcluster.archive import write_archive
from localcluster.certs import Authority
from localcluster.controlplane import control_plane, write_control_plane
from localcluster.errors import ClusterError, ProgramEndedError
from localcluster.launcher import Launcher, recorded
from localcluster.network import Subnet, choose_subnet, free_ports
from localcluster.packages import ensure_packages
from localcluster.paths import Report, clusters_dir, locked
from localcluster.processes import Process
from localcluster.sandbox import Sandbox
from localcluster.state import Options, State, cluster_names, folder_of, load_state
from localcluster.tools import kubernetes_dir, program

_PORTS = {"apiserver": 6443, "etcd": 2379, "etcd-peer": 2380}
_API_TIMEOUT = 180.0


def bring_up(name: str, options: Options, owner: Process | None, report: Report) -> State:
    """Start what does not run of a cluster, and wait until it can be used.

    Raises:
        ClusterError: a program is missing or failed, or the cluster exists with other options.
    """
    folder_of(name)  # refuses what is not a name before anything is built
    if options.node:
        ensure_packages(report)
        program("coredns", report)
    remove_orphans(report)
    programs = kubernetes_dir(needed_programs(options), report)
    with _lock(name, report):
        state = load_state(name)
        if state and state.options != options:
            raise ClusterError(f"cluster {name!r} exists with other options; `localcluster down --name {name}` first")
        if state is None:
            _remove(name)  # what a start left that died before it wrote down its state
            state = _settle(name, options, programs, owner)
        if not Path(state.programs).is_dir():
            state = dataclasses.replace(state, programs=str(programs))
            state.save()
        try:
            started = _start(state, report)
        except ProgramEndedError as error:
            # One that was just killed may look alive when it is counted, and take others along when it goes.
            report(f"{error}\nstarting it once more")
            started = _start(state, report)
        report(f"cluster {name!r}: started {', '.join(started)}" if started else f"cluster {name!r} runs already")
    return state


def take_down(name: str, report: Report) -> bool:
    """End everything of a cluster and remove it; False if there was nothing."""
    with _lock(name, report):
        existed = _remove(name)
        _lock_path(name).unlink()
    return existed


def remove_orphans(report: Report) -> None:
    """Remove the clusters whose owner died before it could do so itself."""
    for name in filter(_orphaned, cluster_names()):
        with _lock(name, report):
            if _orphaned(name):  # still: others remove orphans too, and the name may have a new owner by now
                report(f"removing cluster {name!r}, whose owner has died")
                _remove(name)
                _lock_path(name).unlink()


def needed_programs(options: Options) -> list[str]:
    """The Kubernetes programs that a cluster with these options runs or that its user calls."""
    programs = ["etcd", "kube-apiserver", "kubectl"]
    programs += ["kube-controller-manager"] if options.controllers else []
    programs += ["kube-scheduler"] if options.scheduler else []
    programs += ["kubelet", "kube-proxy", "pause", "fakegpu"] if options.node else []
    return programs


def api_get(state: State, path: str) -> dict[str, Any] | None:
    """What the API server answers to a GET of `path` by the cluster's admin; None if it does not, or refuses.

    An answer that is not JSON counts as an empty object.
    """
    certs = state.folder / "certs"
    context = ssl.create_default_context(cafile=certs / "ca.crt")
    context.load_cert_chain(certs / "admin.crt", certs / "admin.key")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(state.server + path, timeout=5) as answer:
            content = answer.read()
    except (OSError, http.client.HTTPException):
        return None
    try:
        found: dict[str, Any] = json.loads(content)
    except ValueError:
        return {}
    return found


def node_is_ready(found: dict[str, Any] | None, gpus: int, since: dt.datetime) -> bool:
    """Whether a Node object, as the API server gives it, can take pods and offers that many GPUs.

    What was said of the node before `since` does not count: a kubelet that was killed leaves it saying Ready.
    """
    status = (found or {}).get("status", {})
    ready = any(
        condition["type"] == "Ready"
        and condition["status"] == "True"
        and dt.datetime.fromisoformat(condition["lastHeartbeatTime"]) >= since.replace(microsecond=0)
        for condition in status.get("conditions", [])
    )
    return ready and int(status.get("allocatable", {}).get(node.GPU_RESOURCE, 0)) == gpus


def _orphaned(name: str) -> bool:
    state = load_state(name)
    return bool(state and state.owner and not state.owner.alive())


def _lock(name: str, report: Report) -> AbstractContextManager[None]:
    return locked(_lock_path(name), lambda: report(f"another process works on cluster {name!r}; waiting for it"))


def _lock_path(name: str) -> Path:
    return clusters_dir() / ".locks" / folder_of(name).name


def _settle(name: str, options: Options, programs: Path, owner: Process | None) -> State:
    with locked(clusters_dir() / ".locks" / ".subnets"):
        folder_of(name).mkdir(parents=True, mode=0o700)
        if options.node:
            ports, subnet = _PORTS, choose_subnet(sandbox.routes(), _octets_taken())
        else:
            ports, subnet = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True)), None
        state = State(name, options, str(programs), ports, subnet, owner)
        state.save()
    return state


def _octets_taken() -> set[int]:
    states = map(load_state, cluster_names())
    return {state.subnet.octet for state in states if state and state.subnet}


def _start(state: State, report: Report) -> list[str]:
    authority = Authority(state.folder / "certs")
    write_control_plane(state, authority)
    launcher = Launcher(state.folder, report)
    if state.subnet:
        holder = Sandbox(state.folder, state.subnet)
        holder.ensure(Path(state.programs) / "pause")
        launcher.enter = holder.enter()
    started = launcher.ensure(control_plane(state))
    launcher.wait("API server", lambda: api_get(state, "/readyz") is not None, "kube-apiserver", _API_TIMEOUT)
    if state.subnet:
        started += _start_node(state, state.subnet, authority, launcher)
    if state.options.controllers:
        # The controller manager makes it for each namespace, and pods need it.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        launcher.wait("service account", lambda: api_get(state, account) is not None, "kube-controller-manager")
    return started


def _start_node(state: State, subnet: Subnet, authority: Authority, launcher: Launcher) -> list[str]:
    coredns = program("coredns", launcher.report)
    node.write_node(state, subnet, authority, sandbox.make_cgroups(state.name))
    started = launcher.ensure(node.container_runtime(state))
    pause = state.folder / "pause.tar"
    write_archive(pause, node.PAUSE_IMAGE, {"/pause": Path(state.programs) / "pause"}, ["/pause"], platform.machine())
    holder = Sandbox(state.folder, subnet)
    launcher.wait("containerd", lambda: holder.succeeds(["ctr", "version"]), "containerd")
    holder.run(["ctr", "--namespace=k8s.io", "images", "import", str(pause)])
    admin = [str(Path(state.programs) / "kubectl"), f"--kubeconfig={state.folder / 'kubeconfig'}"]
    sandbox.run([*admin, "apply", "--filename=-"], stdin=json.dumps(node.access_for_dns()))
    now, always = dt.datetime.now(dt.UTC), dt.datetime.min.replace(tzinfo=dt.UTC)
    started += launcher.ensure(node.node_agents(state, subnet, coredns))
    since = now if {"kubelet", "fakegpu"} & set(started) else always
    path = f"/api/v1/nodes/{node.node_name(state)}"
    launcher.wait("Ready node", lambda: node_is_ready(api_get(state, path), state.options.gpus, since), "kubelet")
    return started


def _remove(name: str) -> bool:
    folder = folder_of(name)
    if not folder.is_dir():
        return False
    for process in recorded(folder).values():
        process.stop(grace=0)  # nothing of what they would still write down is kept
    state = load_state(name)
    if state and state.subnet:
        Sandbox(folder, state.subnet).remove()
    shutil.rmtree(folder)
    return True
