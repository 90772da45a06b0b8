"""Checkpoints: the size and root of a log as a note that people can keep, in C2SP's format.

docs/reference/checkpoint.md is the format; c2sp.org/tlog-checkpoint and c2sp.org/signed-note are
where it comes from.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from dataclasses import dataclass, replace
from typing import Self

from statelog.domain.errors import Invalid

LIMIT = 1 << 20
"""Bytes of the largest note that is read."""

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_SIGNATURE = re.compile("\N{EM DASH} ([^ ]+) ([^ ]+)")
_ROOT, _KEY_ID = 32, 4


@dataclass(frozen=True)
class Signature:
    """One signature line: whose (name and 4 bytes of key id), and the signature itself."""

    name: str
    key_id: bytes
    value: bytes

    def __str__(self) -> str:
        return f"\N{EM DASH} {self.name} {_base64(self.key_id + self.value)}\n"


@dataclass(frozen=True)
class Checkpoint:
    """What a log was: `root` is the RFC 6962 root (32 bytes) over its first `size` events.

    `str` of it is the note. Raises `Invalid` for what cannot be written as one.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()
    signatures: tuple[Signature, ...] = ()

    def __post_init__(self) -> None:
        for line in (self.origin, *self.extensions):
            if not line or _has_control(line):
                raise Invalid(
                    "checkpoint", "a line of it is not empty and has no control character"
                )
        if self.size < 0 or len(self.root) != _ROOT:
            raise Invalid("checkpoint", "has a size of at least 0 and a root of 32 bytes")

    @property
    def text(self) -> str:
        """The note without its signatures: what is signed."""
        lines = (self.origin, str(self.size), _base64(self.root), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    def __str__(self) -> str:
        if not self.signatures:
            return self.text
        return f"{self.text}\n{''.join(map(str, self.signatures))}"

    def with_signature(self, signature: Signature) -> Self:
        """This checkpoint with one more signature."""
        return replace(self, signatures=(*self.signatures, signature))


def parse_checkpoint(note: bytes) -> Checkpoint:
    """The checkpoint that a note holds; `str` of it is the same note, byte for byte.

    Raises `Invalid` naming the line that is wrong.
    """
    if len(note) > LIMIT:
        raise _wrong(f"it has more than {LIMIT:,} bytes")
    try:
        text = note.decode()
    except UnicodeDecodeError:
        raise _wrong("it is not UTF-8") from None
    if not text.endswith("\n") or _has_control(text.replace("\n", "")):
        raise _wrong("it is not lines of text, each ended by a newline alone")
    body, blank, signatures = text.rpartition("\n\n")
    if not blank:
        return _parsed(text, ())
    return _parsed(f"{body}\n", tuple(map(_signature, signatures.removesuffix("\n").split("\n"))))


def _parsed(text: str, signatures: tuple[Signature, ...]) -> Checkpoint:
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 3 or not all(lines):
        raise _wrong("it does not begin with origin, size and root, each on a line")
    origin, size, root, *extensions = lines
    if not _SIZE.fullmatch(size):
        raise _wrong("line 2 is not the size of a log")
    raw = _bytes(root)
    if raw is None or len(raw) != _ROOT:
        raise _wrong("line 3 is not a root of 32 bytes in base64")
    return Checkpoint(origin, int(size), raw, tuple(extensions), signatures)


def _signature(line: str) -> Signature:
    match = _SIGNATURE.fullmatch(line)
    raw = _bytes(match[2]) if match else None
    if match is None or raw is None or len(raw) <= _KEY_ID:
        raise _wrong("what follows its empty line is not signatures")
    return Signature(check_name(match[1]), raw[:_KEY_ID], raw[_KEY_ID:])


def check_name(name: str) -> str:
    """A name that a key can have. Raises `Invalid`."""
    if not name or _has_control(name) or "+" in name or any(map(str.isspace, name)):
        raise Invalid("origin", "of a signed checkpoint is a name without spaces and `+`")
    return name


def _bytes(text: str) -> bytes | None:
    """The bytes of base64 text, None unless it is the one text that stands for them."""
    try:
        raw = b64decode(text, validate=True)
    except (Error, ValueError):
        return None
    return raw if _base64(raw) == text else None


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()


def _has_control(text: str) -> bool:
    return any(character < " " for character in text)


def _wrong(why: str) -> Invalid:
    return Invalid("checkpoint", f"is none: {why}")
