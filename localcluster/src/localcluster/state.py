"""What is known of a cluster: what was asked for, and what was settled when it was first started."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from localcluster.errors import ClusterError
from localcluster.network import Subnet
from localcluster.paths import clusters_dir
from localcluster.processes import Process

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Options:
    """What a user asks of a cluster; a running one cannot change them.

    Attributes:
        node: Whether there is a node that runs containers.
        gpus: How many `nvidia.com/gpu` the node says it has. No device stands behind them.
        controllers: Whether the controller manager runs: Deployments, Jobs, EndpointSlices, garbage collection.
        scheduler: Whether the scheduler runs. A node needs it; nodes that are simulated do too.
        audit: Whether the API server logs every request (`Cluster.audit_log`).
        controllers_qps: Requests a second that the controller manager and the scheduler allow themselves, with
            bursts of twice as many. Default: theirs (20 and 50). For measurements, raise it for all that is compared.
        registry_storage: The registry's folder, kept when the cluster goes. Default: one that goes with it.
    """

    node: bool = False
    gpus: int = 0
    controllers: bool = True
    scheduler: bool = False
    audit: bool = False
    controllers_qps: int | None = None
    registry_storage: str | None = None

    def __post_init__(self) -> None:
        if self.gpus < 0:
            raise ClusterError(f"a node cannot have {self.gpus} GPUs")
        if not self.node and (self.gpus or self.registry_storage):
            raise ClusterError("GPUs and a registry need a node (node=True; without --no-node)")
        if self.node and not (self.controllers and self.scheduler):
            raise ClusterError("a node needs the controller manager and the scheduler")


@dataclass(frozen=True, slots=True)
class State:
    """A cluster that has been started.

    Attributes:
        name: Of the cluster.
        options: What was asked for.
        programs: The folder with Kubernetes' programs.
        ports: Of `apiserver`, `etcd` and `etcd-peer`.
        subnet: The node's network; None without a node.
        owner: The process that the cluster shall not outlive; None if it stays until somebody takes it down.
    """

    name: str
    options: Options
    programs: str
    ports: dict[str, int]
    subnet: Subnet | None = None
    owner: Process | None = None

    @property
    def folder(self) -> Path:
        """Where everything of this cluster is."""
        return folder_of(self.name)

    @property
    def api_host(self) -> str:
        """The address at which host, node and pods reach the API server."""
        return self.subnet.node if self.subnet else "127.0.0.1"

    @property
    def server(self) -> str:
        """The API server's address as kubeconfigs name it."""
        return f"https://{self.api_host}:{self.ports['apiserver']}"

    def save(self) -> None:
        """Write it down, whole or not at all."""
        new = self.folder / "state.new"
        new.write_text(json.dumps(asdict(self), indent=1))
        new.replace(self.folder / "state.json")


def folder_of(name: str) -> Path:
    """The folder of the cluster of that name, whether there is one or not.

    Raises:
        ClusterError: that is not a name for a cluster.
    """
    if not _NAME.fullmatch(name):
        raise ClusterError(f"{name!r} is no name for a cluster: up to 30 of a-z, 0-9 and '-', a letter first")
    return clusters_dir() / name


def load_state(name: str) -> State | None:
    """What is known of a cluster; None if there is none, or one of which nothing can be made out."""
    try:
        raw = json.loads((folder_of(name) / "state.json").read_text())
        return State(
            name=name,
            options=Options(**raw["options"]),
            programs=raw["programs"],
            ports=raw["ports"],
            subnet=Subnet(**raw["subnet"]) if raw["subnet"] else None,
            owner=Process(**raw["owner"]) if raw["owner"] else None,
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def cluster_names() -> list[str]:
    """The clusters that have a folder, by name."""
    if not clusters_dir().is_dir():
        return []
    return sorted(path.name for path in clusters_dir().iterdir() if path.is_dir() and _NAME.fullmatch(path.name))
