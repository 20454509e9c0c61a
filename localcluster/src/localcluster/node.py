"""The node: configuration and command of containerd, kubelet, kube-proxy, registry and DNS."""

import json
from pathlib import Path

from localcluster.certs import Authority
from localcluster.controlplane import Component, kubeconfig_of, write, write_kubeconfig, write_yaml
from localcluster.network import Subnet
from localcluster.packages import CNI_PROGRAMS
from localcluster.state import State

PAUSE_IMAGE = "localcluster.invalid/pause:1"
GPU_RESOURCE = "nvidia.com/gpu"
REGISTRY_PORT = 5000
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
DNS_DOMAIN = "cluster.local"

_OVERLAYFS = "overlay"
_ACCESS = "kube-dns"


def node_name(state: State) -> str:
    """The name of the Node object."""
    return f"{state.name}-node"


def registry_of(subnet: Subnet) -> str:
    """Host and port of the registry."""
    return f"{subnet.node}:{REGISTRY_PORT}"


def container_runtime(state: State) -> list[Component]:
    """What pods are made with, which the kubelet must find when it starts."""
    config = state.folder / "config"
    return [
        Component("containerd", ("containerd", "--config", str(config / "containerd.toml"))),
        Component("registry", ("docker-registry", "serve", str(config / "registry.yaml"))),
    ]


def node_agents(state: State, subnet: Subnet, coredns: Path) -> list[Component]:
    """What needs the API server: kubelet, kube-proxy, DNS and the stand-in for GPUs."""
    config, programs = state.folder / "config", Path(state.programs)
    kubelet = Component(
        "kubelet",
        (
            str(programs / "kubelet"),
            f"--config={config / 'kubelet.yaml'}",
            f"--kubeconfig={kubeconfig_of(state, 'kubelet')}",
            f"--hostname-override={node_name(state)}",
            f"--node-ip={subnet.node}",
        ),
    )
    gpus = (f"--resource={GPU_RESOURCE}", f"--count={state.options.gpus}")
    return [
        # First, so that GPUs are there when the kubelet looks at pods that had some before it was restarted.
        *([Component("fakegpu", (str(programs / "fakegpu"), *gpus))] if state.options.gpus else []),
        kubelet,
        Component("kube-proxy", (str(programs / "kube-proxy"), f"--config={config / 'kube-proxy.yaml'}")),
        Component("coredns", (str(coredns), "-conf", str(config / "Corefile"))),
    ]


def write_node(state: State, subnet: Subnet, authority: Authority, cgroup: str) -> None:
    """Certificates, kubeconfigs and configuration files of the node."""
    config = state.folder / "config"
    authority.issue("kubelet", f"system:node:{node_name(state)}", organization="system:nodes")
    authority.issue("kubelet-server", node_name(state), hosts=[node_name(state), subnet.node])
    authority.issue("kube-proxy", "system:kube-proxy")
    authority.issue("coredns", _ACCESS)
    for user in ("kubelet", "kube-proxy", "coredns"):
        write_kubeconfig(state, authority, user, kubeconfig_of(state, user))
    storage = Path(state.options.registry_storage or state.folder / "registry")
    storage.mkdir(parents=True, exist_ok=True)
    write_yaml(config / "registry.yaml", registry_config(subnet, storage))
    write_yaml(config / "kubelet.yaml", kubelet_config(state, subnet, cgroup))
    write_yaml(config / "kube-proxy.yaml", kube_proxy_config(state, subnet))
    write(config / "Corefile", corefile(state, subnet))
    write(config / "resolv.conf", "")  # there is nobody to ask for names outside
    write(config / "containerd.toml", containerd_config(state.folder))
    hosts = f'[host."http://{registry_of(subnet)}"]\ncapabilities = ["pull", "resolve"]\n'
    write(config / "registries" / registry_of(subnet) / "hosts.toml", hosts)
    write(config / "cni" / "pods.conflist", json.dumps(pod_network(subnet), indent=1))


def containerd_config(folder: Path) -> str:
    """The TOML that containerd 1.6 reads. What it holds in `state` lives on the node's own /run."""
    snapshotter = "native" if filesystem_of(folder) == _OVERLAYFS else "overlayfs"
    quote = json.dumps  # a JSON string is a TOML string
    return f"""\
version = 2
root = {quote(str(folder / "containerd"))}
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = {quote(CONTAINERD_SOCKET)}
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = {quote(PAUSE_IMAGE)}
stream_server_address = "127.0.0.1"
# Root without CAP_SYS_RESOURCE, as in some virtual machines, may not lower it, and every pod would fail.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = {quote(snapshotter)}
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = {quote(str(CNI_PROGRAMS))}
conf_dir = {quote(str(folder / "config" / "cni"))}
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = {quote(str(folder / "config" / "registries"))}
"""


def filesystem_of(path: Path) -> str:
    """The type of the file system that `path` is on, as /proc/self/mounts names it."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    holding = [m for m in mounts if path.resolve().is_relative_to(m[1])]
    return max(holding, key=lambda m: len(m[1]))[2] if holding else "unknown"


def pod_network(subnet: Subnet) -> dict[str, object]:
    """The CNI configuration: every pod is routed to, so that even neighbours meet kube-proxy's rules."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": subnet.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni",
    }
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": addresses},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def registry_config(subnet: Subnet, storage: Path) -> dict[str, object]:
    """What docker-registry reads."""
    return {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(storage)}, "delete": {"enabled": True}},
        "http": {"addr": registry_of(subnet)},
    }


def kubelet_config(state: State, subnet: Subnet, cgroup: str) -> dict[str, object]:
    """What the kubelet reads."""
    certs = state.folder / "certs"
    signals = ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": subnet.node,
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(certs / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certs / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(certs / "kubelet-server.key"),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "clusterDNS": [subnet.node],
        "clusterDomain": DNS_DOMAIN,
        "resolvConf": str(state.folder / "config" / "resolv.conf"),
        # A loaded image has no registry to ask whether a pod may use it.
        "imagePullCredentialsVerificationPolicy": "NeverVerify",
        # How soon the scheduler learns of the GPUs; by default ten seconds.
        "nodeStatusUpdateFrequency": "2s",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # The machine's disk and memory belong to others too: how full they are is no reason to end pods.
        "evictionHard": dict.fromkeys(signals, "0%"),
        "imageGCHighThresholdPercent": 100,
    }


def kube_proxy_config(state: State, subnet: Subnet) -> dict[str, object]:
    """What kube-proxy reads. Limits of connection tracking are the host's, and stay as they are."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig_of(state, "kube-proxy"))},
        "clusterCIDR": subnet.pods,
        "hostnameOverride": node_name(state),
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def corefile(state: State, subnet: Subnet) -> str:
    """What CoreDNS reads: Services and pods, nothing outside."""
    return f"""\
.:53 {{
  bind {subnet.node}
  errors
  kubernetes {DNS_DOMAIN} in-addr.arpa {{
    kubeconfig {kubeconfig_of(state, "coredns")}
    ttl 1
  }}
}}
"""


def access_for_dns() -> dict[str, object]:
    """The RBAC by which CoreDNS reads Services and their endpoints."""
    rules = [
        {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    name = {"name": "localcluster-dns"}
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": name, "rules": rules}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": name,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", **name},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": _ACCESS}],
    }
    return {"apiVersion": "v1", "kind": "List", "items": [role, binding]}
