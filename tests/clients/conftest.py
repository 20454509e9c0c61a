"""One server at a time with the stand-in model; the clients; and the record from which the table is written."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "parser"))
sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "servers"))
import installs
import servers
import table


def pytest_configure() -> None:
    # The servers are stopped also when this process is asked to end.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("asked to end", returncode=143))


@pytest.fixture(scope="session")
def clients() -> installs.Clients:
    return installs.install_clients()


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Served]:
    served: servers.Server = request.param
    # A start takes a minute or more: say so past pytest's capture.
    request.config.get_terminal_writer().line(f"\n==> starting vLLM {served}")
    folder = tmp_path_factory.mktemp(str(served))
    with servers.vllm(served, folder) as url:
        yield servers.Served(served, url)


@pytest.fixture(scope="session")
def litellm(
    server: servers.Served, clients: installs.Clients, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with servers.litellm(clients.python, server.url, tmp_path_factory.mktemp("litellm")) as url:
        yield url


@pytest.fixture(scope="session")
def record() -> Iterator[table.Record]:
    """What came out, by server, client and scenario, beside what earlier runs left."""
    found = table.load()
    yield found
    table.write(found)
