"""The namespaces in which a node lives, so that nodes do not meet each other, nor leave anything behind.

One process holds a network, a mount and a process namespace. Everything of the node runs inside: its ports,
kube-proxy's tables and the pods' interfaces cannot meet those of the host or of another node. When the holder is
killed, the kernel ends every process inside (it is their process 1) and drops their mounts and interfaces; only cgroups
are left to remove.
Paths that the kubelet and the CNI library fix are mounted over inside with folders of the cluster's own; of those, an
empty /var/lib/kubelet and /var/lib/cni stay on the host.
"""

import contextlib
import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcluster.errors import ClusterError
from localcluster.network import Subnet
from localcluster.processes import Process, only_child, start, tail

_RUN_TIMEOUT = 300.0
_CGROUPS = Path("/sys/fs/cgroup")
_CGROUP_PARENT = "localcluster"
_FIXED_PATHS = {"kubelet": "/var/lib/kubelet", "cni": "/var/lib/cni", "var-log": "/var/log"}
_UNSHARE = ("unshare", "--mount", "--propagation=slave", "--net", "--pid", "--fork", "--mount-proc", "--")

# What the kubelet would set for the whole machine. Inside, it finds them set, in files of the sandbox's own.
_SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}

_SETUP_INSIDE = """\
for _ in $(seq 100); do [ "$(cat /proc/1/comm)" = {holder} ] && break; sleep 0.1; done  # until /proc is that of inside
mount -t tmpfs -o mode=0755 localcluster /run
mount --make-rshared /
ip link set lo up
ip address add {node}/24 dev eth0
ip link set eth0 up
ip route add unreachable default
echo 1 > /proc/sys/net/ipv4/ip_forward
"""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The namespaces of one cluster's node.

    Attributes:
        folder: Of the cluster.
        subnet: Of the cluster.
    """

    folder: Path
    subnet: Subnet

    @property
    def _record(self) -> Path:
        return self.folder / "processes" / "sandbox.json"

    @property
    def _set_up(self) -> Path:
        """Which process's namespaces were set up to the end."""
        return self.folder / "sandbox-set-up"

    def process(self) -> Process | None:
        """The holder of the namespaces; None if it does not run, or they were not set up to the end."""
        process = Process.load(self._record)
        usable = process and process.alive() and Process.load(self._set_up) == process
        return process if usable else None

    def ensure(self, holder: Path) -> bool:
        """Have the namespaces; whether they had to be made anew.

        Args:
            holder: A program that does nothing but reap: it becomes process 1 inside.
        """
        if self.process():
            return False
        self.remove()
        log = self.folder / "logs" / "sandbox.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self._record.parent.mkdir(parents=True, exist_ok=True)
        process = only_child(start([*_UNSHARE, str(holder)], log, os.environ))
        if process is None:
            raise ClusterError(f"no namespaces for the node; unshare said:\n{tail(log)}")
        process.save(self._record)
        try:
            self._connect(process)
            run([*_enter(process), "sh", "-euc", self._script(holder.name)])
        except ClusterError as error:
            raise ClusterError(f"{error}\n{tail(log)}") from error
        process.save(self._set_up)
        return True

    def enter(self) -> list[str]:
        """The start of a command that runs the rest of it inside, as its only child.

        Raises:
            ClusterError: there are no namespaces.
        """
        process = self.process()
        if process is None:
            raise ClusterError("the node does not run; `localcluster up` starts it again")
        return _enter(process)

    def run(self, command: Sequence[str]) -> str:
        """Run a command inside; its stdout.

        Raises:
            ClusterError: it failed; the message has its stderr.
        """
        return run([*self.enter(), *command])

    def succeeds(self, command: Sequence[str]) -> bool:
        """Whether a command that runs inside succeeds."""
        try:
            self.run(command)
        except ClusterError:
            return False
        return True

    def remove(self) -> None:
        """End everything inside, and remove what the kernel does not: the link's name at once, and cgroups."""
        process = Process.load(self._record)
        if process:
            process.stop(grace=0)
        subprocess.run(["ip", "link", "delete", self.subnet.link], capture_output=True, check=False)
        remove_cgroups(f"{_CGROUP_PARENT}/{self.folder.name}")

    def _script(self, holder: str) -> str:
        lines = [_SETUP_INSIDE.format(node=self.subnet.node, holder=holder)]
        for name, path in _FIXED_PATHS.items():
            (self.folder / name).mkdir(exist_ok=True)
            Path(path).mkdir(parents=True, exist_ok=True)
            lines.append(f"mount --bind {shlex.quote(str(self.folder / name))} {path}")
        for sysctl, value in _SYSCTLS.items():
            file = f"/run/sysctl/{sysctl}"
            lines.append(f"mkdir -p {file.rpartition('/')[0]} && echo {value} > {file}")
            lines.append(f"mount --bind {file} /proc/sys/{sysctl}")
        return "\n".join(lines)

    def _connect(self, process: Process) -> None:
        link = self.subnet.link
        run(["ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(process.pid)])
        run(["ip", "address", "add", f"{self.subnet.host}/24", "dev", link])
        run(["ip", "link", "set", link, "up"])
        run(["ip", "route", "add", self.subnet.whole, "via", self.subnet.node])


def routes() -> list[str]:
    """The destinations of the host's IPv4 routes, "default" among them."""
    return [route["dst"] for route in json.loads(run(["ip", "-4", "-json", "route", "show", "table", "main"]))]


def make_cgroups(cluster: str) -> str:
    """Make the cgroup of a cluster in every hierarchy; its path below their roots."""
    path = f"{_CGROUP_PARENT}/{cluster}"
    for hierarchy in _hierarchies():
        (hierarchy / path).mkdir(parents=True, exist_ok=True)
    return f"/{path}"


def remove_cgroups(path: str, timeout: float = 10.0) -> None:
    """Remove a cgroup and all below it in every hierarchy; processes that are ending are waited for.

    Raises:
        ClusterError: one is still in use `timeout` seconds later.
    """
    deadline = time.monotonic() + timeout
    for hierarchy in _hierarchies():
        while (hierarchy / path).is_dir():
            busy = [folder for folder in _deepest_first(hierarchy / path) if not _removed(folder)]
            if busy and time.monotonic() > deadline:
                raise ClusterError(f"cgroup {busy[0]} is still in use; see {busy[0]}/cgroup.procs")
            time.sleep(0.05 if busy else 0)
        _removed((hierarchy / path).parent)  # unless another cluster is in it


def _hierarchies() -> list[Path]:
    """Where cgroups are made: one place on version 2, one for each mounted controller on version 1."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return sorted(path for path in _CGROUPS.iterdir() if path.is_dir() and not path.is_symlink())


def _deepest_first(folder: Path) -> Iterator[Path]:
    for child in folder.iterdir():
        if child.is_dir():
            yield from _deepest_first(child)
    yield folder


def _removed(folder: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        try:
            folder.rmdir()
        except OSError:
            return False
    return True


def _enter(process: Process) -> list[str]:
    return ["nsenter", f"--target={process.pid}", "--mount", "--net", "--pid", "--"]


def run(command: Sequence[str], stdin: str | None = None) -> str:
    """Run a command; its stdout.

    Raises:
        ClusterError: it failed; the message has its stderr.
    """
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=_RUN_TIMEOUT)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
