"""The cluster's own certificate authority: the server's certificate, and those that clients show."""

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mooring.kubeapi.auth.user import AUTHENTICATED, User

YEARS = 10
SERVICE_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class Pair(NamedTuple):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


def _name(common: str, groups: Iterable[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=365 * YEARS))
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), text)


def make_authority() -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("mooring")
    public = key.public_key()
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = (
        _builder(name, name, public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def _issue(authority: Pair, subject: x509.Name, extensions: Iterable[x509.ExtensionType]) -> Pair:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signing_key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    builder = (
        _builder(subject, issuer.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return _pair(builder.sign(signing_key, hashes.SHA256()), key)


def issue_server(authority: Pair, hosts: Iterable[str]) -> Pair:
    """A certificate for the addresses that the server is reached at."""
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys((*hosts, "127.0.0.1", *SERVICE_NAMES)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return _issue(authority, _name("kube-apiserver"), (x509.SubjectAlternativeName(names), usage))


def issue_client(authority: Pair, user: str, groups: Iterable[str] = ()) -> Pair:
    """A certificate that says who a client is."""
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _issue(authority, _name(user, groups), (usage,))


def user_of(certificate: bytes) -> User | None:
    """Who shows a certificate (DER); the connection has already checked who signed it."""
    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    return User(names[0], (*groups, AUTHENTICATED)) if names and names[0] else None
