from pathlib import Path

import pytest

from localcluster.network import Subnet
from localcluster.processes import Process
from localcluster.state import Options, State

PORTS = {"apiserver": 6443, "etcd": 2379, "etcd-peer": 2380}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMMASERVE_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def with_node(cache: Path) -> State:
    options = Options(node=True, gpus=2, scheduler=True)
    state = State("demo", options, "/programs", PORTS, Subnet(201), Process(1, 2))
    state.folder.mkdir(parents=True)
    return state


@pytest.fixture
def without_node(cache: Path) -> State:
    state = State("bare", Options(audit=True), "/programs", {"apiserver": 40001, "etcd": 40002, "etcd-peer": 40003})
    state.folder.mkdir(parents=True)
    return state
