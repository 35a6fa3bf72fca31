"""Certificates: given ones, or a local authority of our own that signs for this host and for every name below a domain.

The authority's key stays in the state folder, readable by its owner alone. Clients trust its certificate, which is
no secret; what it signs is renewed long before it ends.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from excise.errors import InputError

AUTHORITY, AUTHORITY_KEY = "ca.pem", "ca.key"
SERVER, SERVER_KEY = "server.pem", "server.key"
AUTHORITY_DAYS, SERVER_DAYS, RENEW_DAYS = 3650, 397, 30


def given(certificate: Path, key: Path) -> ssl.SSLContext:
    """A context for a certificate and key that somebody else made."""
    try:
        return _context(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"{certificate} and {key} are no certificate and its key: {error}"
        ) from error


def generated(folder: Path, names: Sequence[str]) -> tuple[ssl.SSLContext, Path]:
    """A context for these names, signed by the authority in that folder; and that authority's certificate."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority, authority_key = _authority(folder)
    wanted = ["localhost", "127.0.0.1", "::1", socket.gethostname(), *names]
    if not _serves(folder, authority, wanted):
        _sign(folder, authority, authority_key, wanted)
    return _context(folder / SERVER, folder / SERVER_KEY), folder / AUTHORITY


def below(domain: str) -> tuple[str, ...]:
    """The names that lead to a service with that domain: itself, and everything one level below."""
    host = domain.partition(":")[0]
    return (host, f"*.{host}")


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    return context


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    path, key_path = folder / AUTHORITY, folder / AUTHORITY_KEY
    if path.exists() and key_path.exists():
        key = serialization.load_pem_private_key(key_path.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise InputError(f"{key_path} is not the key that belongs there: move it away")
        return x509.load_pem_x509_certificate(path.read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Excise on {socket.gethostname()}")])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        _builder(name, name, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _keep(key_path, _private(key), 0o600)
    _keep(path, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return certificate, key


def _serves(folder: Path, authority: x509.Certificate, names: Sequence[str]) -> bool:
    """Whether the certificate there is of this authority, for all these names, and for long enough."""
    path = folder / SERVER
    if not path.exists() or not (folder / SERVER_KEY).exists():
        return False
    found = x509.load_pem_x509_certificates(path.read_bytes())[0]
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(days=RENEW_DAYS)
    if found.not_valid_after_utc < soon or found.issuer != authority.subject:
        return False
    held = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return all(each in held for each in _alternatives(names))


def _sign(
    folder: Path, authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, names: Sequence[str]
) -> None:
    own = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[-1][:64])])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    certificate = (
        _builder(subject, authority.subject, own.public_key(), SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(key, hashes.SHA256())
    )
    chain = (certificate, authority)
    pem = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in chain)
    _keep(folder / SERVER_KEY, _private(own), 0o600)
    _keep(folder / SERVER, pem, 0o644)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=days))
    )


def _alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in dict.fromkeys(names):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _keep(path: Path, data: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by others meanwhile."""
    coming = path.with_suffix(".new")
    coming.unlink(missing_ok=True)
    descriptor = os.open(coming, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    with os.fdopen(descriptor, "wb") as out:
        out.write(data)
    coming.replace(path)
