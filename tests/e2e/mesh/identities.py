"""Gives every workload a certificate with its SPIFFE name, as istiod does."""

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFE = datetime.timedelta(days=1)


def principal(namespace: str, account: str) -> str:
    """Return the name of a service account, as policies write it."""
    return f"cluster.local/ns/{namespace}/sa/{account}"


class Authority:
    """Signs the certificates of one mesh."""

    def __init__(self, folder: Path) -> None:
        """Make a key, and put the certificate of the root into the folder."""
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the root of a test")])
        certificate = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.root = folder / "root.pem"
        _write(self.root, certificate.sign(self._key, hashes.SHA256()))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate for a principal, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        # Istio's have an empty subject, and the name in a critical extension.
        certificate = self._builder(x509.Name([]), key).add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"spiffe://{name}")]),
            critical=True,
        )
        stem = name.rpartition("/")[2]
        chain, secret = self._folder / f"{stem}.pem", self._folder / f"{stem}.key"
        _write(chain, certificate.sign(self._key, hashes.SHA256()))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return chain, secret

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            # A clock may stand a little behind.
            .not_valid_before(now - LIFE)
            .not_valid_after(now + LIFE)
        )


def _write(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
