"""Where things are kept between runs, and how processes keep out of each other's way there."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

Report = Callable[[str], None]
"""Takes one line of progress."""

GO_SOURCES = Path(__file__).resolve().parents[2] / "go"
"""The Go modules, beside `src/` in a checkout."""


def cache_dir() -> Path:
    """`$GEMMASERVE_CACHE`, by default `~/.cache/gemmaserve`: shared by every clone of the project."""
    return Path(os.environ.get("GEMMASERVE_CACHE") or Path.home() / ".cache" / "gemmaserve")


def clusters_dir() -> Path:
    """One folder a cluster: its state, certificates, logs and data."""
    return cache_dir() / "clusters"


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock on `path` among processes; `waiting` is called once if another one holds it.

    The kernel lets go of the lock when its holder dies. The holder may remove the file when nobody needs it any more.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(file, path):
                continue  # its last holder removed it: the next one locks another file of this name
            yield
            return


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
