"""What a node needs of the machine: root, and programs from Debian's packages."""

import os
import shutil
import subprocess
from pathlib import Path

from localcluster.errors import ClusterError
from localcluster.paths import Report, cache_dir, locked

CNI_PROGRAMS = Path("/usr/lib/cni")

_PACKAGE_OF = {
    "containerd": "containerd",
    "runc": "runc",
    f"{CNI_PROGRAMS}/ptp": "containernetworking-plugins",
    "docker-registry": "docker-registry",
    "nft": "nftables",
    "iptables": "iptables",  # of the portmap plugin
    "ip": "iproute2",
    "nsenter": "util-linux",
}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing_packages() -> list[str]:
    """The Debian packages that would bring the programs which are not here."""
    path = f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"
    return sorted({package for name, package in _PACKAGE_OF.items() if not shutil.which(name, path=path)})


def ensure_packages(report: Report) -> None:
    """Install what a node needs and the machine does not have.

    Raises:
        ClusterError: this is not root, or the packages could not be installed; the message has the command.
    """
    if os.geteuid() != 0:
        raise ClusterError(
            "a node that runs containers needs root: call it with sudo, or start a cluster without a node (--no-node)"
        )
    if not missing_packages():
        return
    with locked(cache_dir() / "apt.lock", lambda: report("another process installs packages; waiting for it")):
        missing = missing_packages()
        if missing:
            _install(missing, report)


def _install(packages: list[str], report: Report) -> None:
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    by_hand = f"install them by hand: apt-get update && {' '.join(command)}"
    if not shutil.which("apt-get"):
        raise ClusterError(f"a node needs what Debian calls {', '.join(packages)}, and there is no apt-get here")
    report(f"installing Debian packages: {', '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["apt-get", "update", "--quiet"], command):
        done = subprocess.run(step, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise ClusterError(f"`{' '.join(step)}` failed:\n{done.stderr.strip()}\n{by_hand}")
    if missing_packages():
        raise ClusterError(f"the packages are installed, but {', '.join(missing_packages())} still lack; {by_hand}")
