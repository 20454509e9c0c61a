"""Locks among processes."""

import multiprocessing
import time
from multiprocessing.synchronize import Event
from pathlib import Path

from localcluster.paths import locked


def hold(path: Path, held: Event, release: Event) -> None:
    with locked(path):
        held.set()
        release.wait(10)


def add_one(path: Path, counter: Path) -> None:
    for _ in range(20):
        with locked(path):
            value = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(value + 1))
            path.unlink()


def test_a_second_holder_waits_and_says_so(tmp_path: Path) -> None:
    held, release = multiprocessing.Event(), multiprocessing.Event()
    process = multiprocessing.Process(target=hold, args=(tmp_path / "lock", held, release))
    process.start()
    assert held.wait(10)
    said = []

    def waiting() -> None:
        said.append("waiting")
        release.set()

    with locked(tmp_path / "lock", waiting):
        assert said == ["waiting"]
    process.join(10)


def test_a_holder_that_dies_lets_go(tmp_path: Path) -> None:
    held, release = multiprocessing.Event(), multiprocessing.Event()
    process = multiprocessing.Process(target=hold, args=(tmp_path / "lock", held, release))
    process.start()
    assert held.wait(10)
    process.kill()
    process.join(10)
    with locked(tmp_path / "lock"):
        pass


def test_one_holder_at_a_time_even_if_each_removes_the_file(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [multiprocessing.Process(target=add_one, args=(tmp_path / "lock", counter)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert counter.read_text() == "80"
