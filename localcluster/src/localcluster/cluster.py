"""A Kubernetes cluster as a caller holds it."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from localcluster.controlplane import audit_log
from localcluster.errors import ClusterError
from localcluster.lifecycle import bring_up, take_down
from localcluster.node import registry_of
from localcluster.paths import Report
from localcluster.processes import Process
from localcluster.sandbox import Sandbox
from localcluster.state import Options, State
from localcluster.tools import program, say

_KUBECTL_TIMEOUT = 300.0


class Cluster:
    """A cluster that runs.

    Attributes:
        name: None for one that the user named by KUBECONFIG.
        kubeconfig: Of the cluster's admin.
    """

    def __init__(self, kubeconfig: Path, kubectl: Path, state: State | None = None, report: Report = say) -> None:
        self.kubeconfig = kubeconfig
        self.name = state.name if state else None
        self._kubectl = kubectl
        self._state = state
        self._report = report

    @classmethod
    def start(  # noqa: PLR0913 - options, each by its name
        cls,
        name: str = "default",
        *,
        node: bool = False,
        gpus: int = 0,
        controllers: bool = True,
        scheduler: bool | None = None,
        audit: bool = False,
        controllers_qps: int | None = None,
        registry_storage: Path | None = None,
        keep: bool = False,
        report: Report = say,
    ) -> Self:
        """Start a cluster, or what does not run of it, and wait until it can be used.

        Args:
            name: Clusters of different names stand side by side.
            node: Have a node that runs containers. Needs root and Debian's packages, which it installs.
            gpus: How many `nvidia.com/gpu` the node says it has. No device stands behind them.
            controllers: Run the controller manager.
            scheduler: Run the scheduler. Default: if there is a node.
            audit: Have the API server log every request to `audit_log`.
            controllers_qps: Requests a second that the controller manager and the scheduler allow themselves.
            registry_storage: A folder for the registry's images that outlives the cluster.
            keep: Leave the cluster up when this process ends.
            report: Takes lines of progress. Default: stderr.

        Raises:
            ClusterError: something is missing or failed; the message names it and the next step.
        """
        options = Options(
            node=node,
            gpus=gpus,
            controllers=controllers,
            scheduler=node if scheduler is None else scheduler,
            audit=audit,
            controllers_qps=controllers_qps,
            registry_storage=str(registry_storage.resolve()) if registry_storage else None,
        )
        state = bring_up(name, options, None if keep else Process.of(os.getpid()), report)
        return cls(state.folder / "kubeconfig", Path(state.programs) / "kubectl", state, report)

    @classmethod
    def existing(cls, report: Report = say) -> Self | None:
        """The cluster that the user named by KUBECONFIG, as it is; None if the variable is not set.

        Raises:
            ClusterError: KUBECONFIG names no file.
        """
        named = os.environ.get("KUBECONFIG")
        if not named:
            return None
        kubeconfig = Path(named).absolute()
        if not kubeconfig.is_file():
            raise ClusterError(f"KUBECONFIG names {named}, which is no file; unset it, or name a cluster's kubeconfig")
        return cls(kubeconfig, program("kubectl", report), report=report)

    @property
    def registry(self) -> str | None:
        """Host and port of the cluster's registry (plain HTTP), for pushes and in pods; None without a node."""
        return registry_of(self._state.subnet) if self._state and self._state.subnet else None

    @property
    def audit_log(self) -> Path | None:
        """One JSON object a line for each request, if the cluster was started with `audit`."""
        return audit_log(self._state) if self._state and self._state.options.audit else None

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = _KUBECTL_TIMEOUT) -> str:
        """Run kubectl as the cluster's admin; its stdout.

        Args:
            arguments: For kubectl.
            stdin: Text for it to read, with `-f -` for one.
            timeout: In seconds.

        Raises:
            ClusterError: kubectl failed or did not end in time; the message has its stderr.
        """
        command: list[str | Path] = [self._kubectl, "--kubeconfig", self.kubeconfig, *arguments]
        shown = f"kubectl {' '.join(arguments)}"
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"`{shown}` did not end in {timeout:.0f} s") from error
        if done.returncode:
            raise ClusterError(f"`{shown}` failed ({done.returncode}): {done.stderr.strip()}")
        return done.stdout

    def load(self, archive: Path) -> None:
        """Put the images of an OCI archive (`buildah push IMAGE oci-archive:FILE:NAME`) where the kubelet finds them.

        Raises:
            ClusterError: the cluster has no node of its own, or the archive could not be read.
        """
        if self._state is None or self._state.subnet is None:
            raise ClusterError("this cluster has no node of localcluster's to load images into")
        sandbox = Sandbox(self._state.folder, self._state.subnet)
        sandbox.run(["ctr", "--namespace=k8s.io", "images", "import", str(archive.resolve())])

    def stop(self) -> None:
        """Remove the cluster and everything it left; one that the user named by KUBECONFIG stays as it is."""
        if self._state:
            take_down(self._state.name, self._report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
