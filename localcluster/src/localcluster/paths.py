"""Where things are kept between runs, and how processes keep out of each other's way there."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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

    The kernel lets go of the lock when its holder dies, and the file is left: removing it would let two processes
    hold "the" lock on two files of the same name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
