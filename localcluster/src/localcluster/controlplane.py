"""The control plane: what each of its programs is called with, and the kubeconfigs of those who talk to it."""

import base64
import os
from dataclasses import dataclass
from pathlib import Path

import yaml

from localcluster.certs import Authority
from localcluster.network import SERVICES_WITHOUT_NODE
from localcluster.state import State

ISSUER = "https://kubernetes.default.svc.cluster.local"

_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True, slots=True)
class Component:
    """A program of the cluster.

    Attributes:
        name: Of its log, its record and its row in `localcluster status`.
        command: What it is called with.
    """

    name: str
    command: tuple[str, ...]


def control_plane(state: State) -> list[Component]:
    """The programs of the control plane in the order to start them."""
    components = [_etcd(state), _apiserver(state)]
    if state.options.controllers:
        components.append(_controller_manager(state))
    if state.options.scheduler:
        components.append(_scheduler(state))
    return components


def write_control_plane(state: State, authority: Authority) -> None:
    """Certificates, kubeconfigs and configuration files of the control plane; those that are there stay."""
    if not authority.key("service-accounts").exists():
        authority.issue_key("service-accounts")
    hosts = ["localhost", "127.0.0.1", state.api_host, "kubernetes.default.svc"]
    hosts += [state.subnet.first_service] if state.subnet else []
    authority.issue("apiserver", "kube-apiserver", hosts=[*hosts, "kubernetes", "kubernetes.default"])
    authority.issue("kubelet-client", "kube-apiserver-kubelet-client", organization="system:masters")
    authority.issue("admin", "admin", organization="system:masters")
    write_kubeconfig(state, authority, "admin", state.folder / "kubeconfig")
    for name in ("kube-controller-manager", "kube-scheduler"):
        authority.issue(name, f"system:{name}")
        write_kubeconfig(state, authority, name, kubeconfig_of(state, name))
    write_yaml(state.folder / "config" / "audit-policy.yaml", _AUDIT_POLICY)
    write_yaml(
        state.folder / "config" / "kube-scheduler.yaml",
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig_of(state, "kube-scheduler"))} | _client_rates(state),
        },
    )


def write(path: Path, text: str) -> None:
    """Write a file that holds something else, with the folders it takes, for its owner alone.

    A file that already holds `text` is left alone: kube-proxy ends when its configuration is written.
    """
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def write_yaml(path: Path, content: object) -> None:
    """Write `content` as YAML, if that changes the file."""
    write(path, yaml.safe_dump(content, sort_keys=False))


def kubeconfig_of(state: State, user: str) -> Path:
    """The kubeconfig of one of the cluster's own programs."""
    return state.folder / "config" / f"{user}.kubeconfig"


def write_kubeconfig(state: State, authority: Authority, user: str, path: Path) -> None:
    """A kubeconfig that needs no other file, so that it can be copied."""

    def encoded(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    ca = encoded(authority.path("ca"))
    certificate = {"client-certificate-data": encoded(authority.path(user))}
    write_yaml(
        path,
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": state.name,
            "clusters": [{"name": state.name, "cluster": {"server": state.server, "certificate-authority-data": ca}}],
            "users": [{"name": user, "user": {**certificate, "client-key-data": encoded(authority.key(user))}}],
            "contexts": [{"name": state.name, "context": {"cluster": state.name, "user": user}}],
        },
    )


def audit_log(state: State) -> Path:
    """Where the API server logs requests, one JSON object a line, if it is asked to."""
    return state.folder / "logs" / "audit.jsonl"


def _services(state: State) -> str:
    """The range of ClusterIPs; without a node nothing routes them, and there is room for thousands of Services."""
    return state.subnet.services if state.subnet else SERVICES_WITHOUT_NODE.whole


def _client_rates(state: State) -> dict[str, int]:
    qps = state.options.controllers_qps
    return {"qps": qps, "burst": 2 * qps} if qps else {}


def _program(state: State, name: str, **flags: object) -> Component:
    """A component called with `flags`, whose names have underscores for dashes; True and False in Go's spelling."""
    rendered = [f"--{flag.replace('_', '-')}={_value(value)}" for flag, value in flags.items()]
    return Component(name, (os.path.join(state.programs, name), *rendered))  # noqa: PTH118 - argv is text


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _etcd(state: State) -> Component:
    client = f"http://127.0.0.1:{state.ports['etcd']}"
    peer = f"http://127.0.0.1:{state.ports['etcd-peer']}"
    return _program(
        state,
        "etcd",
        data_dir=state.folder / "etcd",
        listen_client_urls=client,
        advertise_client_urls=client,
        listen_peer_urls=peer,
        initial_advertise_peer_urls=peer,
        initial_cluster=f"default={peer}",
        # What a crash of the whole machine would cost is a cluster that is made anew in seconds.
        unsafe_no_fsync=True,
        log_level="warn",
    )


def _apiserver(state: State) -> Component:
    certs = state.folder / "certs"
    flags: dict[str, object] = {
        "etcd_servers": f"http://127.0.0.1:{state.ports['etcd']}",
        "secure_port": state.ports["apiserver"],
        "service_cluster_ip_range": _services(state),
        "authorization_mode": "Node,RBAC",
        "enable_admission_plugins": "NodeRestriction",
        "allow_privileged": True,
        "client_ca_file": certs / "ca.crt",
        "tls_cert_file": certs / "apiserver.crt",
        "tls_private_key_file": certs / "apiserver.key",
        "service_account_issuer": ISSUER,
        "service_account_key_file": certs / "service-accounts.pub",
        "service_account_signing_key_file": certs / "service-accounts.key",
        "profiling": False,
    }
    if state.subnet:
        flags |= {
            "bind_address": "0.0.0.0",  # of the node's own network namespace
            "advertise_address": state.subnet.node,
            "kubelet_preferred_address_types": "InternalIP",
            "kubelet_certificate_authority": certs / "ca.crt",
            "kubelet_client_certificate": certs / "kubelet-client.crt",
            "kubelet_client_key": certs / "kubelet-client.key",
        }
    else:
        # A loopback address cannot be the endpoint of the Service `kubernetes`, and there are no pods to use it.
        flags |= {"bind_address": "127.0.0.1", "endpoint_reconciler_type": "none"}
    if state.options.audit:
        flags |= {
            "audit_policy_file": state.folder / "config" / "audit-policy.yaml",
            "audit_log_path": audit_log(state),
            "audit_log_mode": "blocking-strict",
        }
    return _program(state, "kube-apiserver", **flags)


def _controller_manager(state: State) -> Component:
    certs = state.folder / "certs"
    rates = {f"kube_api_{key}": value for key, value in _client_rates(state).items()}
    return _program(
        state,
        "kube-controller-manager",
        kubeconfig=kubeconfig_of(state, "kube-controller-manager"),
        leader_elect=False,
        secure_port=0,
        use_service_account_credentials=True,
        service_account_private_key_file=certs / "service-accounts.key",
        root_ca_file=certs / "ca.crt",
        cluster_signing_cert_file=certs / "ca.crt",
        cluster_signing_key_file=certs / "ca.key",
        profiling=False,
        **rates,
    )


def _scheduler(state: State) -> Component:
    return _program(state, "kube-scheduler", config=state.folder / "config" / "kube-scheduler.yaml", secure_port=0)
