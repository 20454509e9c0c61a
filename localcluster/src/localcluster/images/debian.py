"""The contents of the image that all others stand on: a minimal Debian with Python, by debootstrap."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from localcluster.images.shell import image_cache, run_logged

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "ca-certificates", "libgomp1", "libnuma1")
"""Python for everything; OpenMP and NUMA are what vLLM's and torch's compiled parts are linked to."""

_UNUSED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/lib/apt/lists", "var/log")
"""Documentation and package lists: a third of the root's size."""


def write_python_context(context: Path) -> None:
    """Make `rootfs.tar` in `context`: a minimal Debian with `PACKAGES`."""
    with tempfile.TemporaryDirectory(dir=image_cache(), prefix="rootfs-") as scratch:
        root = Path(scratch, "root")
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root)]
        command += [mirror] if (mirror := _debian_mirror()) else []
        log = image_cache() / "debootstrap.log"
        run_logged(command, what="python image: a minimal Debian (debootstrap)", log=log)
        for folder in (*_UNUSED, "var/cache/apt/archives"):
            shutil.rmtree(root / folder, ignore_errors=True)
            (root / folder).mkdir(parents=True)
        subprocess.run(["tar", "--numeric-owner", "-cf", context / "rootfs.tar", "-C", root, "."], check=True)


def _debian_mirror() -> str | None:
    """The mirror this machine's own apt uses for `SUITE`, if it has one; else debootstrap's default applies."""
    query = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {SUITE}"]
    listing = subprocess.run(query, check=False, capture_output=True, text=True).stdout
    return next(iter(listing.splitlines()), None)
