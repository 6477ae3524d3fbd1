"""A certificate authority that lives as long as a test."""

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM

SIGNS = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
    encipher_only=False, decipher_only=False,
)  # fmt: skip
"""What an authority uses its key for."""


class Authority:
    """Signs certificates into a directory. Its own is `ca.pem` there, under the name given."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = directory / f"{name}.pem"
        certificate = self._sign(self._name, self._key.public_key(), ca=True)
        self.file.write_bytes(certificate.public_bytes(_PEM))

    def issue(self, name: str, file: str | None = None) -> tuple[Path, Path]:
        """A certificate for `localhost` with that common name; the files of it and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key.public_key(), ca=False)
        cert_file = self._directory / f"{file or name}.pem"
        key_file = self._directory / f"{file or name}-key.pem"
        cert_file.write_bytes(certificate.public_bytes(_PEM))
        key_file.write_bytes(
            key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return cert_file, key_file

    def client(self, *alpn: str, certificate: tuple[Path, Path] | None = None) -> ssl.SSLContext:
        """What a client uses that trusts this authority."""
        context = ssl.create_default_context(cafile=str(self.file))
        if alpn:
            context.set_alpn_protocols(alpn)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        return context

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, ca: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        # Python 3.13 asks a chain for the identifiers of keys, and an authority for what it may do.
        ours = self._key.public_key()
        for extension in (
            x509.SubjectKeyIdentifier.from_public_key(key),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ours),
        ):
            builder = builder.add_extension(extension, critical=False)
        if ca:
            builder = builder.add_extension(SIGNS, critical=True)
        else:
            names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())
