"""Which addresses a cluster gets."""

import ipaddress

import pytest

from localcluster.errors import ClusterError
from localcluster.network import SECOND_OCTETS, SERVICES_WITHOUT_NODE, Subnet, choose_subnet, free_ports


def test_the_parts_of_a_subnet_lie_in_it_and_do_not_meet() -> None:
    subnet = Subnet(207)
    link = ipaddress.ip_network("10.207.0.0/24")
    parts = [link, ipaddress.ip_network(subnet.pods), ipaddress.ip_network(subnet.services)]
    whole = ipaddress.ip_network(subnet.whole)
    assert all(part.subnet_of(whole) for part in parts)  # type: ignore[arg-type]
    assert not any(a.overlaps(b) for a in parts for b in parts if a is not b)
    assert all(ipaddress.ip_address(address) in link for address in (subnet.host, subnet.node))
    assert ipaddress.ip_address(subnet.first_service) == next(ipaddress.ip_network(subnet.services).hosts())


def test_interface_names_fit_the_kernels_limit() -> None:
    assert len(Subnet(max(SECOND_OCTETS)).link) <= 15  # IFNAMSIZ - 1


def test_the_first_free_one_is_chosen() -> None:
    assert choose_subnet(["default", "192.0.2.0/24"], []) == Subnet(201)


def test_those_of_other_clusters_are_left_out() -> None:
    assert choose_subnet([], {201, 202}) == Subnet(203)


@pytest.mark.parametrize("route", ["10.201.0.0/16", "10.201.77.0/24", "10.201.3.4", "10.200.0.0/15"])
def test_those_that_the_host_routes_elsewhere_are_left_out(route: str) -> None:
    chosen = choose_subnet([route], [])
    assert not ipaddress.ip_network(chosen.whole).overlaps(ipaddress.ip_network(route))


def test_none_left_is_an_error_with_a_next_step() -> None:
    with pytest.raises(ClusterError, match=r"ip route.*localcluster status"):
        choose_subnet(["10.0.0.0/8"], [])
    with pytest.raises(ClusterError):
        choose_subnet([], set(SECOND_OCTETS))


def test_without_a_node_services_take_addresses_of_no_node() -> None:
    assert SERVICES_WITHOUT_NODE.octet not in SECOND_OCTETS


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
