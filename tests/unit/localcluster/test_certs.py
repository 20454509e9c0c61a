"""Certificates that Kubernetes' programs and OpenSSL accept, checked by OpenSSL itself."""

import ipaddress
import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from localcluster.certs import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certs")


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def subject(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str | bytes]:
    return [attribute.value for attribute in certificate.subject.get_attributes_for_oid(oid)]


def test_the_authority_has_the_ca_bit(authority: Authority) -> None:
    """Else the controller manager does not publish it to pods."""
    ca = load(authority.path("ca"))
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert ca.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_users_and_groups_are_name_and_organization(authority: Authority) -> None:
    """Kubernetes reads them so: Authenticating, X.509 client certificates."""
    authority.issue("kubelet", "system:node:n", organization="system:nodes")
    certificate = load(authority.path("kubelet"))
    assert subject(certificate, NameOID.COMMON_NAME) == ["system:node:n"]
    assert subject(certificate, NameOID.ORGANIZATION_NAME) == ["system:nodes"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_hosts_are_names_and_addresses(authority: Authority) -> None:
    authority.issue("server", "server", hosts=["kubernetes.default", "10.1.2.3"])
    names = load(authority.path("server")).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes.default"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.1.2.3")]


def test_keys_are_their_owners(authority: Authority) -> None:
    authority.issue("admin", "admin")
    assert authority.key("admin").stat().st_mode & 0o077 == 0
    assert authority.key("ca").stat().st_mode & 0o077 == 0
    assert authority.folder.stat().st_mode & 0o077 == 0


def test_what_is_there_is_used_on(authority: Authority) -> None:
    authority.issue("admin", "admin")
    before = [authority.path(name).read_bytes() for name in ("ca", "admin")]
    again = Authority(authority.folder)
    again.issue("admin", "admin")
    assert [authority.path(name).read_bytes() for name in ("ca", "admin")] == before


def handshake(authority: Authority, client_of: Authority, server_name: str) -> None:
    """A TLS connection in which both sides show a certificate and check the other's, as strictly as OpenSSL can."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.path("ca"))
    server.verify_mode = ssl.CERT_REQUIRED
    server.verify_flags |= ssl.VERIFY_X509_STRICT
    server.load_cert_chain(authority.path("server"), authority.key("server"))
    client = ssl.create_default_context(cafile=authority.path("ca"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.load_cert_chain(client_of.path("admin"), client_of.key("admin"))
    near, far = socket.socketpair()
    near.settimeout(10)
    far.settimeout(10)

    def serve() -> None:
        try:
            server.wrap_socket(far, server_side=True).sendall(b"x")
        except ssl.SSLError:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(near, server_hostname=server_name) as connection:
            if connection.recv(1) != b"x":
                raise ssl.SSLError("refused by the server")
    finally:
        thread.join()
        far.close()


def test_both_sides_of_a_connection_accept_them(authority: Authority) -> None:
    authority.issue("server", "server", hosts=["127.0.0.1"])
    authority.issue("admin", "admin")
    handshake(authority, authority, "127.0.0.1")


def test_another_name_or_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    for each in (authority, other):
        each.issue("server", "server", hosts=["127.0.0.1"])
        each.issue("admin", "admin")
    with pytest.raises(ssl.SSLError):
        handshake(authority, authority, "127.0.0.2")
    with pytest.raises(ssl.SSLError):
        handshake(authority, other, "127.0.0.1")
