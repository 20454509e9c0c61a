"""What may be asked of a cluster, and what is remembered of it."""

import datetime as dt
from typing import Any

import pytest

from localcluster.errors import ClusterError
from localcluster.lifecycle import needed_programs, node_is_ready
from localcluster.state import Options, State, cluster_names, folder_of, load_state

NOON = dt.datetime(2026, 1, 1, 12, 0, 0, 700_000, tzinfo=dt.UTC)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"gpus": 1}, "need a node"),
            ({"registry_storage": "/r"}, "need a node"),
            ({"node": True, "scheduler": True, "gpus": -1}, "-1 GPUs"),
            ({"node": True}, "needs the controller manager and the scheduler"),
            ({"node": True, "scheduler": True, "controllers": False}, "needs the controller manager"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ClusterError, match=message):
            Options(**options)

    def test_only_what_runs_is_needed(self) -> None:
        """envtest's folder has just these three, and suffices for a cluster without controllers."""
        assert set(needed_programs(Options(controllers=False))) == {"etcd", "kube-apiserver", "kubectl"}
        assert "kube-controller-manager" in needed_programs(Options())
        assert {"kubelet", "kube-proxy", "kube-scheduler"} <= set(needed_programs(Options(node=True, scheduler=True)))


class TestState:
    def test_it_is_read_back(self, with_node: State, without_node: State) -> None:
        for state in (with_node, without_node):
            state.save()
            assert load_state(state.name) == state

    @pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"options": {"colour": "red"}}'])
    def test_what_is_broken_counts_as_none(self, with_node: State, content: str) -> None:
        (with_node.folder / "state.json").write_text(content)
        assert load_state("demo") is None
        assert cluster_names() == ["demo"]

    def test_there_may_be_none(self, cache: Any) -> None:
        assert load_state("demo") is None
        assert cluster_names() == []

    @pytest.mark.parametrize("name", ["", "..", "a/b", ".locks", "Demo", "1st", "a-", "a" * 31, "a\n"])
    def test_names_that_are_none(self, name: str) -> None:
        with pytest.raises(ClusterError, match="is no name for a cluster"):
            folder_of(name)

    def test_the_api_server_is_where_everybody_reaches_it(self, with_node: State, without_node: State) -> None:
        assert with_node.server == "https://10.201.0.2:6443"
        assert without_node.server == "https://127.0.0.1:40001"


class TestNodeIsReady:
    @staticmethod
    def node(*, ready: str = "True", beat: str = "2026-01-01T12:00:00Z", gpus: str | None = "2") -> dict[str, Any]:
        allocatable = {"cpu": "2"} | ({"nvidia.com/gpu": gpus} if gpus else {})
        conditions = [
            {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": beat},
            {"type": "Ready", "status": ready, "lastHeartbeatTime": beat},
        ]
        return {"status": {"allocatable": allocatable, "conditions": conditions}}

    def test_ready_with_its_gpus(self) -> None:
        assert node_is_ready(self.node(), 2, NOON)  # the API's times have whole seconds
        assert node_is_ready(self.node(gpus=None), 0, NOON)

    def test_none_before_it_registers(self) -> None:
        assert not node_is_ready(None, 0, NOON)
        assert not node_is_ready({"status": {}}, 0, NOON)

    def test_what_it_said_before_it_was_killed_does_not_count(self) -> None:
        assert not node_is_ready(self.node(beat="2026-01-01T11:59:59Z"), 2, NOON)

    @pytest.mark.parametrize("wrong", [{"ready": "False"}, {"ready": "Unknown"}, {"gpus": None}, {"gpus": "0"}])
    def test_not_ready(self, wrong: dict[str, Any]) -> None:
        assert not node_is_ready(self.node(**wrong), 2, NOON)
