"""What the programs are called with and read: the settings without which a cluster does not come up, or is not safe."""

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcluster import node
from localcluster.certs import Authority
from localcluster.controlplane import Component, control_plane, write_control_plane
from localcluster.network import Subnet
from localcluster.state import Options, State

SUBNET = Subnet(201)


def flags(components: list[Component], name: str) -> dict[str, str]:
    command = next(component.command for component in components if component.name == name)
    assert command[0] == f"/programs/{name}"
    return dict(flag.removeprefix("--").split("=", 1) for flag in command[1:])


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


class TestControlPlane:
    def test_without_a_node_nothing_listens_beyond_loopback(self, without_node: State) -> None:
        components = control_plane(without_node)
        assert flags(components, "kube-apiserver")["bind-address"] == "127.0.0.1"
        etcd = flags(components, "etcd")
        assert etcd["listen-client-urls"] == "http://127.0.0.1:40002"
        assert etcd["listen-peer-urls"] == "http://127.0.0.1:40003"

    def test_the_api_server_finds_its_etcd(self, without_node: State) -> None:
        components = control_plane(without_node)
        server = flags(components, "kube-apiserver")
        assert server["etcd-servers"] == flags(components, "etcd")["advertise-client-urls"]
        assert server["secure-port"] == "40001"

    def test_pods_and_kubelet_are_reached_with_a_node(self, with_node: State) -> None:
        server = flags(control_plane(with_node), "kube-apiserver")
        assert server["advertise-address"] == "10.201.0.2"
        assert server["kubelet-preferred-address-types"] == "InternalIP"
        assert {"kubelet-client-certificate", "kubelet-client-key", "kubelet-certificate-authority"} <= set(server)

    def test_audit_is_an_option(self, with_node: State, without_node: State) -> None:
        log = flags(control_plane(without_node), "kube-apiserver")["audit-log-path"]
        assert log == str(without_node.folder / "logs" / "audit.jsonl")
        assert "audit-log-path" not in flags(control_plane(with_node), "kube-apiserver")

    @pytest.mark.parametrize(
        ("options", "names"),
        [
            (Options(controllers=False), ["etcd", "kube-apiserver"]),
            (Options(), ["etcd", "kube-apiserver", "kube-controller-manager"]),
            (Options(scheduler=True), ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]),
        ],
    )
    def test_what_runs_is_what_was_asked_for(self, options: Options, names: list[str]) -> None:
        ports = {"apiserver": 1, "etcd": 2, "etcd-peer": 3}
        assert [c.name for c in control_plane(State("x", options, "/programs", ports))] == names

    def test_controllers_and_scheduler_may_ask_more_often(self, cache: Path) -> None:
        options = Options(scheduler=True, controllers_qps=300)
        state = State("fast", options, "/programs", {"apiserver": 1, "etcd": 2, "etcd-peer": 3})
        manager = flags(control_plane(state), "kube-controller-manager")
        assert (manager["kube-api-qps"], manager["kube-api-burst"]) == ("300", "600")
        write_control_plane(state, Authority(state.folder / "certs"))
        client = read(state.folder / "config" / "kube-scheduler.yaml")["clientConnection"]
        assert (client["qps"], client["burst"]) == (300, 600)

    def test_a_kubeconfig_stands_alone_and_is_its_owners(self, without_node: State) -> None:
        write_control_plane(without_node, Authority(without_node.folder / "certs"))
        path = without_node.folder / "kubeconfig"
        assert path.stat().st_mode & 0o077 == 0
        config = read(path)
        assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:40001"
        assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}

    def test_a_second_start_changes_no_file(self, with_node: State) -> None:
        """kube-proxy, for one, ends when its configuration is written; and certificates are held open."""

        def write() -> dict[Path, int]:
            authority = Authority(with_node.folder / "certs")
            write_control_plane(with_node, authority)
            node.write_node(with_node, SUBNET, authority, "/localcluster/demo")
            return {file: file.stat().st_mtime_ns for file in with_node.folder.rglob("*") if file.is_file()}

        assert write() == write()


class TestNode:
    def test_root_without_cap_sys_resource_can_start_pods(self, with_node: State) -> None:
        config = tomllib.loads(node.containerd_config(with_node.folder))
        cri = config["plugins"]["io.containerd.grpc.v1.cri"]
        assert cri["restrict_oom_score_adj"] is True
        assert node.kubelet_config(with_node, SUBNET, "/c")["oomScoreAdj"] == 0

    def test_both_versions_of_cgroups_do(self, with_node: State) -> None:
        config = node.kubelet_config(with_node, SUBNET, "/localcluster/demo")
        assert config["failCgroupV1"] is False
        assert config["cgroupRoot"] == "/localcluster/demo"

    def test_containerd_keeps_to_the_clusters_folder(self, with_node: State) -> None:
        config = tomllib.loads(node.containerd_config(with_node.folder))
        cri = config["plugins"]["io.containerd.grpc.v1.cri"]
        for path in (config["root"], cri["cni"]["conf_dir"], cri["registry"]["config_path"]):
            assert Path(path).is_relative_to(with_node.folder)

    def test_containerd_speaks_plain_http_to_the_registry(self, with_node: State) -> None:
        node.write_node(with_node, SUBNET, Authority(with_node.folder / "certs"), "/c")
        hosts = tomllib.loads((with_node.folder / "config/registries/10.201.0.2:5000/hosts.toml").read_text())
        assert list(hosts["host"]) == ["http://10.201.0.2:5000"]
        assert read(with_node.folder / "config" / "registry.yaml")["http"]["addr"] == "10.201.0.2:5000"

    def test_the_registrys_images_may_outlive_the_cluster(self, with_node: State, cache: Path) -> None:
        options = Options(node=True, scheduler=True, registry_storage=str(cache / "images"))
        state = dataclasses.replace(with_node, options=options)
        node.write_node(state, SUBNET, Authority(state.folder / "certs"), "/c")
        storage = read(state.folder / "config" / "registry.yaml")["storage"]
        assert storage["filesystem"]["rootdirectory"] == str(cache / "images")

    def test_the_kubelet_refuses_strangers(self, with_node: State) -> None:
        config: Any = node.kubelet_config(with_node, SUBNET, "/c")
        assert config["authentication"]["anonymous"]["enabled"] is False
        assert config["authorization"]["mode"] == "Webhook"

    def test_pods_ask_the_clusters_dns(self, with_node: State) -> None:
        assert node.kubelet_config(with_node, SUBNET, "/c")["clusterDNS"] == ["10.201.0.2"]
        assert "bind 10.201.0.2" in node.corefile(with_node, SUBNET)

    def test_kube_proxy_uses_nftables_and_leaves_the_hosts_limits(self, with_node: State) -> None:
        config: Any = node.kube_proxy_config(with_node, SUBNET)
        assert config["mode"] == "nftables"
        assert config["conntrack"]["maxPerCore"] == 0

    def test_pods_get_addresses_of_the_subnet(self) -> None:
        network: Any = json.loads(json.dumps(node.pod_network(SUBNET)))
        assert [plugin["type"] for plugin in network["plugins"]] == ["ptp", "portmap"]
        assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.201.1.0/24"}]]

    def test_gpus_have_a_stand_in_only_if_asked_for(self, with_node: State) -> None:
        agents = node.node_agents(with_node, SUBNET, Path("/coredns"))
        assert agents[0].command == ("/programs/fakegpu", "--resource=nvidia.com/gpu", "--count=2")
        none = State("demo", Options(node=True, scheduler=True), "/programs", {}, SUBNET)
        assert "fakegpu" not in [agent.name for agent in node.node_agents(none, SUBNET, Path("/coredns"))]

    def test_the_file_system_of_a_path(self) -> None:
        assert node.filesystem_of(Path("/proc/self")) == "proc"
        assert node.filesystem_of(Path("/proc/sys/kernel")) == "proc"
