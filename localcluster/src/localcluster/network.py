"""The addresses of a cluster, and the choice of those that are free on this machine."""

import ipaddress
import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from localcluster.errors import ClusterError

SECOND_OCTETS = range(201, 250)
"""Clusters take 10.201.0.0/16, 10.202.0.0/16 and so on: one each."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """The addresses of one cluster with a node: 10.N.0.0/16.

    Attributes:
        octet: N.
    """

    octet: int

    @property
    def whole(self) -> str:
        """All of it, which the host routes to the node."""
        return f"10.{self.octet}.0.0/16"

    @property
    def host(self) -> str:
        """The host's address on the link to the node."""
        return f"10.{self.octet}.0.1"

    @property
    def node(self) -> str:
        """The node's address: API server, registry, kubelet, DNS."""
        return f"10.{self.octet}.0.2"

    @property
    def pods(self) -> str:
        """Of pods."""
        return f"10.{self.octet}.1.0/24"

    @property
    def services(self) -> str:
        """Of Services (ClusterIPs)."""
        return f"10.{self.octet}.2.0/24"

    @property
    def first_service(self) -> str:
        """The ClusterIP that the API server takes for itself."""
        return f"10.{self.octet}.2.1"

    @property
    def link(self) -> str:
        """The host's end of the link to the node."""
        return f"lcluster{self.octet}"


SERVICES_WITHOUT_NODE = Subnet(SECOND_OCTETS[-1] + 1)
"""ClusterIPs that are handed out where nothing routes them."""


def choose_subnet(routes: Iterable[str], taken: Collection[int]) -> Subnet:
    """The first subnet that meets none of the host's `routes` ("10.0.0.0/8", "default", ...) nor `taken` octets.

    Raises:
        ClusterError: none is left.
    """
    networks = [ipaddress.ip_network(route, strict=False) for route in routes if route != "default"]
    for octet in SECOND_OCTETS:
        subnet = Subnet(octet)
        wanted = ipaddress.ip_network(subnet.whole)
        if octet not in taken and not any(n.version == wanted.version and n.overlaps(wanted) for n in networks):
            return subnet
    raise ClusterError(
        f"no network is left of 10.{SECOND_OCTETS[0]}.0.0/16 to 10.{SECOND_OCTETS[-1]}.0.0/16: see `ip route`, and "
        "`localcluster status` for clusters that may go"
    )


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens at on 127.0.0.1, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
