"""The certificates of a small authority of your own: `zq tls` makes and signs them.

Keys are P-256, since every TLS library supports it. The extensions are those that strict verifiers
require (RFC 5280, section 4.2).
"""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SKEW = timedelta(minutes=5)
"""Certificates begin this much in the past, since the clocks of clients may be behind."""


class Pair(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority(NamedTuple):
    """The authority that signs, with its key."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes


def make_authority(common_name: str, days: int) -> Pair:
    """Make a self-signed authority. It signs only end certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _builder(name, key.public_key(), datetime.now(UTC) + timedelta(days=days))
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def read_authority(pair: Pair) -> Authority:
    """Read an authority. Raises `ValueError` if the files do not contain one."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    key = serialization.load_pem_private_key(pair.key, password=None)
    if key.public_key() != certificate.public_key():
        raise ValueError("the key belongs to another certificate")
    try:
        signs = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        signs = False
    if not signs:
        raise ValueError("the certificate may not sign others")
    return Authority(certificate, key)  # type: ignore[arg-type]  # sign() refuses other kinds


def make_server(authority: Authority, common_name: str, sans: tuple[str, ...], days: int) -> Pair:
    """Make a server's certificate for the names and addresses `sans`."""
    names = x509.SubjectAlternativeName([_general_name(san) for san in sans])
    return _make_end(authority, common_name, days, ExtendedKeyUsageOID.SERVER_AUTH, names)


def make_client(authority: Authority, common_name: str, days: int) -> Pair:
    """Make a client's certificate."""
    return _make_end(authority, common_name, days, ExtendedKeyUsageOID.CLIENT_AUTH, None)


def _make_end(
    authority: Authority,
    common_name: str,
    days: int,
    usage: x509.ObjectIdentifier,
    names: x509.SubjectAlternativeName | None,
) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    until = min(datetime.now(UTC) + timedelta(days=days), issuer.not_valid_after_utc)
    builder = (
        _builder(_name(common_name), key.public_key(), until)
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(_signed_by(issuer), critical=False)
    )
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return _pair(builder.sign(authority.key, hashes.SHA256()), key)


def _signed_by(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        named = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(named)


def _builder(
    name: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(san: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(san))
    except ValueError:
        return x509.DNSName(san)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return Pair(
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
    )
