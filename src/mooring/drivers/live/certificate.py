"""The certificate with which a scheduler serves its metrics where the user gives none: self-signed, kept in memory."""

import socket
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mooring.errors import InputError

DAYS = 365
"""How long it is valid: as long as kube-scheduler's own."""


def serving_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """TLS with the user's certificate, or with one made for this process."""
    if (certificate is None) != (key is None):
        raise InputError("--tls-cert-file and --tls-private-key-file: expected both, found one")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if certificate is not None and key is not None:
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            found = f"found {type(error).__name__}: {error}"
            raise InputError(
                f"--tls-cert-file: {certificate}: expected a certificate and its key, found {found}"
            ) from error
        return context
    with tempfile.TemporaryDirectory() as directory:  # ssl reads files alone; nobody else may read this directory
        path = Path(directory) / "serving.pem"
        path.touch(mode=0o600)
        path.write_bytes(_self_signed(socket.gethostname()))
        context.load_cert_chain(path)
    return context


def _self_signed(host: str) -> bytes:
    """A certificate for this host and its key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host), x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem) + secret
