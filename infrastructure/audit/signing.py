"""Ed25519 signatures of checkpoints, by the rules of C2SP's signed notes. Needs `cryptography`."""

from __future__ import annotations

from base64 import b64encode
from enum import Enum
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING

from statelog.domain.errors import Invalid
from statelog.infrastructure.audit.checkpoint import Checkpoint, Signature, check_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_ED25519 = b"\1"


class Signed(Enum):
    """How a checkpoint is signed by a key."""

    GOOD, BAD, MISSING = "good", "bad", "missing"


def key_id(name: str, public: bytes) -> bytes:
    """The four bytes that name a key in a note: of a name and 32 bytes of an Ed25519 key."""
    return sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


def verifier_key(name: str, public: bytes) -> str:
    """A public key on one line, as tools for signed notes take it."""
    encoded = b64encode(_ED25519 + public).decode()
    return f"{name}+{key_id(name, public).hex()}+{encoded}"


def signed(checkpoint: Checkpoint, private_pem: bytes) -> Checkpoint:
    """A checkpoint with the signature of a private key in PEM, in the name of its origin.

    Raises `Invalid` for what is no such key, an origin that cannot be a name, and when
    `cryptography` is not installed.
    """
    name, key = check_name(checkpoint.origin), _private(private_pem)
    value = key.sign(checkpoint.text.encode())
    return checkpoint.with_signature(
        Signature(name, key_id(name, key.public_key().public_bytes_raw()), value)
    )


def public_of(private_pem: bytes) -> bytes:
    """The 32 bytes of the public key that belongs to a private key. Raises `Invalid`."""
    return _private(private_pem).public_key().public_bytes_raw()


def check_signature(checkpoint: Checkpoint, public_pem: bytes) -> Signed:
    """Whether a public key in PEM signed a checkpoint in the name of its origin.

    Signatures of others are passed over, as the format wants it. Raises `Invalid`.
    """
    key, name = _public(public_pem), checkpoint.origin
    whose = (name, key_id(name, key.public_bytes_raw()))
    found = [each for each in checkpoint.signatures if (each.name, each.key_id) == whose]
    if not found:
        return Signed.MISSING
    good = all(_holds(key, each.value, checkpoint.text.encode()) for each in found)
    return Signed.GOOD if good else Signed.BAD


def _holds(key: Ed25519PublicKey, value: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(value, text)
    except InvalidSignature:
        return False
    return True


def _private(pem: bytes) -> Ed25519PrivateKey:
    _need_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise Invalid("key", "is encrypted; give it decrypted, from a pipe if need be") from None
    except ValueError:
        raise Invalid("key", "is not a private key in PEM") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise Invalid("key", "is not an Ed25519 key")
    return key


def _public(pem: bytes) -> Ed25519PublicKey:
    _need_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    try:
        key = serialization.load_pem_public_key(pem)
    except ValueError:
        raise Invalid("public key", "is not a public key in PEM") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise Invalid("public key", "is not an Ed25519 key")
    return key


def _need_cryptography() -> None:
    try:
        import_module("cryptography.hazmat.primitives.serialization")
    except ImportError:
        raise Invalid("signatures", "need an extra: pip install 'statelog[sign]'") from None
