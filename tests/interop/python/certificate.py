"""Writes a certificate authority and the certificate of a venue on this machine: ca.pem, certificate.pem and key.pem.
Argument: the folder."""

import datetime
import ipaddress
import pathlib
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

FOLDER = pathlib.Path(sys.argv[1])
NOW = datetime.datetime.now(datetime.timezone.utc)


def make(name, issuer, issuer_key, key, extension):
    builder = x509.CertificateBuilder(
        issuer_name=issuer, subject_name=name, public_key=key.public_key(), serial_number=x509.random_serial_number(),
        not_valid_before=NOW - datetime.timedelta(days=1), not_valid_after=NOW + datetime.timedelta(days=2),
    ).add_extension(extension, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def named(name):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def write(name, content):
    (FOLDER / name).write_bytes(content)


pem = serialization.Encoding.PEM
ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
ca = make(named("authority"), named("authority"), ca_key, ca_key, x509.BasicConstraints(ca=True, path_length=None))
names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
certificate = make(named("venue"), ca.subject, ca_key, key, names)
write("ca.pem", ca.public_bytes(pem))
write("certificate.pem", certificate.public_bytes(pem))
write("key.pem", key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
