"""The programs built from our Go modules, and where a cluster's programs are looked for."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.errors import ClusterError
from localcluster.gotoolchain import find_go
from localcluster.paths import GO_SOURCES, Report, cache_dir, locked

_SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module below `go/` and what is built from it.

    Attributes:
        folder: Below `go/`.
        packages: Program name to the Go package of its main function.
        links: Further names of the program that has the module's name, which picks what to be by its name.
        hint: How long a build from nothing takes, measured on two cores.
    """

    folder: str
    packages: dict[str, str]
    links: tuple[str, ...] = ()
    hint: str = "a minute or two"

    @property
    def programs(self) -> tuple[str, ...]:
        """Every name by which something in this module is called."""
        return (*self.packages, *self.links)


KUBERNETES_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubectl",
)

MODULES = {
    "kube": Module(
        "kube", {"kube": ".", "pause": "./pause", "fakegpu": "./fakegpu"}, KUBERNETES_PROGRAMS, "about six minutes"
    ),
    "coredns": Module("coredns", {"coredns": "."}),
    "helm": Module("tools/helm", {"helm": "helm.sh/helm/v3/cmd/helm"}),
    "kubeconform": Module("tools/kubeconform", {"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"}),
    "helm-docs": Module("tools/helm-docs", {"helm-docs": "github.com/norwoodj/helm-docs/cmd/helm-docs"}),
    "kwok": Module("tools/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
}


def say(line: str) -> None:
    """Progress for people: to stderr, so that stdout is left to results."""
    print(line, file=sys.stderr, flush=True)


def program(name: str, report: Report = say) -> Path:
    """The path of a program by its name ("helm", "kubectl", ...), built first if the cache has none.

    Raises:
        ClusterError: no module builds a program of that name, or the build failed.
    """
    for module_name, module in MODULES.items():
        if name in module.programs:
            return build(module_name, report) / name
    known = sorted(name for module in MODULES.values() for name in module.programs)
    raise ClusterError(f"no module builds {name!r}; there are: {', '.join(known)}")


def assets_dir(needed: Iterable[str]) -> Path | None:
    """The folder named by KUBEBUILDER_ASSETS if it holds every program in `needed`.

    A cluster's programs come from one place: a controller manager newer than its API server is not supported.
    """
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if folder and all(os.access(Path(folder) / name, os.X_OK) for name in needed):
        return Path(folder)
    return None


def kubernetes_dir(needed: Iterable[str], report: Report = say) -> Path:
    """The folder of the programs in `needed`: KUBEBUILDER_ASSETS, else our own cache, built first if it has none."""
    assets = assets_dir(needed)
    if assets:
        report(f"programs of KUBEBUILDER_ASSETS: {assets}")
        return assets
    return build("kube", report)


def source_key(folder: Path) -> str:
    """Twelve hexadecimal digits that change with any file of a Go module, and with nothing else."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for part in (str(file.relative_to(folder)).encode(), file.read_bytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:12]


def build(name: str, report: Report = say) -> Path:
    """The folder with a module's programs, built unless a build of the very same sources is in the cache.

    Raises:
        ClusterError: there is no such module, no Go, or the build failed.
    """
    if name not in MODULES:
        raise ClusterError(f"there is no module {name!r}; there are: {', '.join(MODULES)}")
    module = MODULES[name]
    sources = GO_SOURCES / module.folder
    if not sources.is_dir():
        raise ClusterError(f"{sources} is missing: run localcluster from a checkout of the project")
    folder = cache_dir() / "bin" / f"{name}-{source_key(sources)}"
    if folder.is_dir():
        return folder
    with locked(folder.with_suffix(".lock"), lambda: report(f"another process builds {name}; waiting for it")):
        if not folder.is_dir():
            _build(name, module, sources, folder, report)
    return folder


def _build(name: str, module: Module, sources: Path, folder: Path, report: Report) -> None:
    go = find_go(report)
    report(f"building {name} ({module.hint} the first time, on two cores)")
    start = time.monotonic()
    scratch = folder.with_name(f".{folder.name}")
    shutil.rmtree(scratch, ignore_errors=True)  # of a build that was killed
    scratch.mkdir()
    for output, package in module.packages.items():
        command = [str(go), "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", _ldflags(sources)]
        _run_go([*command, "-o", str(scratch / output), package], sources, f"building {name}", report)
    for link in module.links:
        (scratch / link).symlink_to(name)
    scratch.rename(folder)
    report(f"built {name} in {time.monotonic() - start:.0f} s: {folder}")


def _ldflags(sources: Path) -> str:
    """Without debug information, and with the version that Kubernetes' own build would write into its programs."""
    flags = "-s -w"
    found = re.search(r"k8s\.io/kubernetes v(\d+)\.(\d+)\.\d+", (sources / "go.mod").read_text())
    if found:
        version = "k8s.io/component-base/version"
        tag = found[0].split()[1]
        flags += f" -X {version}.gitVersion={tag} -X {version}.gitMajor={found[1]} -X {version}.gitMinor={found[2]}"
    return flags


@dataclass(slots=True)
class _Progress:
    label: str
    report: Report
    start: float = field(default_factory=time.monotonic)
    packages: int = 0
    last: float = field(default_factory=time.monotonic)

    def package(self) -> None:
        self.packages += 1
        now = time.monotonic()
        if now - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = now
            self.report(f"  {self.label}: {self.packages} packages compiled, {now - self.start:.0f} s")


def _run_go(command: list[str], sources: Path, label: str, report: Report) -> None:
    """Run `go build -v`, which writes a line for each package it compiles, among what goes wrong."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    progress = _Progress(label, report)
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=sources, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None  # noqa: S101 - asked for just above; this tells the type checker
        for line in process.stderr:
            lines.append(line.rstrip())
            progress.package()
    if process.returncode:
        tail = "\n".join(lines[-15:])
        raise ClusterError(f"{label} failed; go said:\n{tail}\nTry it by hand: cd {sources} && go build ./...")
