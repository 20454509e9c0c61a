"""A certificate authority of the cluster's own, and the client and server certificates it signs."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = dt.timedelta(days=365)
_CLOCK_SKEW = dt.timedelta(minutes=5)

Key = ec.EllipticCurvePrivateKey


class Authority:
    """Signs certificates into one folder: `ca.crt`, `ca.key`, and `NAME.crt`, `NAME.key` for each issued one.

    An authority that is already in the folder is used on, and a certificate that is there is left as it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.path("ca").exists():
            self._create()
        self._certificate = x509.load_pem_x509_certificate(self.path("ca").read_bytes())
        key = serialization.load_pem_private_key(self.key("ca").read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{self.key('ca')} does not hold an elliptic curve key")
        self._key = key

    def path(self, name: str) -> Path:
        """Where the certificate of that name is."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Where the key of that name is."""
        return self.folder / f"{name}.key"

    def issue(self, name: str, common_name: str, *, organization: str | None = None, hosts: Sequence[str] = ()) -> None:
        """Sign a certificate for a client and, if `hosts` has names or addresses, for a server of that name.

        Args:
            name: Of the files.
            common_name: The user's name to the API server.
            organization: The user's group to the API server.
            hosts: DNS names and IP addresses at which a server with this certificate is reached.
        """
        if self.path(name).exists():
            return
        key = self.issue_key(name)
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if organization:
            subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = (
            _builder(x509.Name(subject), self._certificate.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(h) for h in hosts]), False)
        certificate = builder.sign(self._key, hashes.SHA256())
        self.path(name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue_key(self, name: str) -> Key:
        """A key alone, with its public half in `NAME.pub`: the one that signs service accounts' tokens."""
        key = ec.generate_private_key(ec.SECP256R1())
        self.key(name).touch(mode=0o600)
        self.key(name).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self.folder / f"{name}.pub").write_bytes(public)
        return key

    def _create(self) -> None:
        key = self.issue_key("ca")
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localcluster")])
        certificate = (
            _builder(name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(_SIGNING, critical=True)
            .sign(key, hashes.SHA256())
        )
        self.path("ca").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


_SIGNING = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _builder(subject: x509.Name, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
