"""Check a statelog store against a checkpoint, with Python's standard library alone.

    python verify_seal.py STORE CHECKPOINT

Exit code 0: the events below the checkpoint are as they were sealed. 1: they are not, and the first
position that does not fit is said. 2: there is no answer, since a file cannot be read.

This program shares no code with statelog. It is written from docs/reference/file-format.md and
docs/reference/checkpoint.md. It does NOT check the checkpoint's signature: the standard library has
no Ed25519. Check that by another way, or keep the checkpoint where nobody can change it.
"""

from __future__ import annotations

import base64
import os
import re
import sqlite3
import struct
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

NUMBERS = "position, version, schema, time"
TEXTS = "stream, name, actor, command, correlation, cause, meta"
QUERY = f"SELECT {NUMBERS}, {TEXTS}, data, data_hash, hash FROM events ORDER BY position"
APPLICATION_ID = 0x53746C67
NULL = 0xFFFFFFFF
EXAMPLE_OF_USE = "usage: python verify_seal.py STORE CHECKPOINT"


class NoAnswer(Exception):
    """A file is not what it should be."""


def read_checkpoint(note: bytes) -> tuple[int, bytes]:
    """Size and root of a checkpoint."""
    try:
        text = note.decode("utf-8")
    except UnicodeDecodeError:
        raise NoAnswer("the checkpoint is not UTF-8") from None
    if re.search(r"[\x00-\x09\x0b-\x1f]", text) or not text.endswith("\n"):
        raise NoAnswer("the checkpoint is not lines of text")
    body, _, signatures = text.rpartition("\n\n")
    lines = (body or signatures[:-1]).split("\n")
    if len(lines) < 3 or not all(lines):
        raise NoAnswer("the checkpoint does not begin with origin, size and root")
    if not re.fullmatch("0|[1-9][0-9]{0,18}", lines[1]):
        raise NoAnswer("line 2 of the checkpoint is not a size")
    try:
        root = base64.b64decode(lines[2], validate=True)
    except ValueError:
        root = b""
    if len(root) != 32 or base64.b64encode(root).decode() != lines[2]:
        raise NoAnswer("line 3 of the checkpoint is not a root")
    return int(lines[1]), root


def leaf_hash(numbers: tuple[Any, ...], texts: tuple[Any, ...], data_hash: Any) -> bytes | None:
    """SHA-256 of a zero byte and the header; None when a value has a type that none can have."""
    if not all(isinstance(number, int) for number in numbers) or not isinstance(data_hash, bytes):
        return None
    if not all(text is None or isinstance(text, bytearray) for text in texts):
        return None
    lengths = [NULL if text is None else len(text) for text in texts]
    header = struct.pack(">B4q7I", 1, *numbers, *lengths)
    return sha256(b"\0" + header + b"".join(text or b"" for text in texts) + data_hash).digest()


def grow(subtrees: list[tuple[int, bytes]], leaf: bytes) -> None:
    """Append a leaf to a Merkle tree, kept as the sizes and roots of its full subtrees."""
    size = 1
    while subtrees and subtrees[-1][0] == size:
        leaf = sha256(b"\1" + subtrees.pop()[1] + leaf).digest()
        size *= 2
    subtrees.append((size, leaf))


def root_of(subtrees: list[tuple[int, bytes]]) -> bytes:
    """The root of that tree."""
    if not subtrees:
        return sha256().digest()
    root = subtrees[-1][1]
    for _, left in subtrees[-2::-1]:
        root = sha256(b"\1" + left + root).digest()
    return root


def first_fault(store: Path, size: int, root: bytes) -> tuple[int | None, str] | None:
    """The first position that does not fit and why (None: no single one); None when all fit."""
    alone = not Path(f"{store}-wal").exists() and not os.access(store.absolute().parent, os.W_OK)
    options = "mode=ro&immutable=1" if alone else "mode=ro"  # SQLite could make no files beside it
    with closing(sqlite3.connect(f"{store.absolute().as_uri()}?{options}", uri=True)) as db:
        if db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            raise NoAnswer(f"{store} is not a statelog store")
        db.text_factory = bytearray  # texts as they are stored, and not to be taken for blobs
        subtrees: list[tuple[int, bytes]] = []
        due = 1
        for row in db.execute(QUERY):
            position = row[0]
            if position < 1:
                return position, "there can be no event here"
            if due > size:
                break
            if position != due:
                return due, "the event is missing"
            data, data_hash, stored = row[11:]
            leaf = leaf_hash(row[:4], row[4:11], data_hash)
            if leaf is None or leaf != stored:
                return due, "the header does not have the leaf hash that is stored"
            if data is not None and (
                not isinstance(data, bytes) or sha256(data).digest() != data_hash
            ):
                return due, "the payload does not have the hash that is stored"
            grow(subtrees, leaf)
            due += 1
    if due <= size:
        return due, "the log ends before this event"
    if root_of(subtrees) != root:
        return None, "events were changed together with their hashes, or this is another log"
    return None


def main(arguments: list[str]) -> int:
    """Check, and say what was found."""
    if len(arguments) != 2:
        print(EXAMPLE_OF_USE, file=sys.stderr)
        return 2
    store, checkpoint = map(Path, arguments)
    try:
        size, root = read_checkpoint(checkpoint.read_bytes())
        fault = first_fault(store, size, root)
    except (NoAnswer, OSError, sqlite3.Error) as error:
        print(f"no answer: {error}", file=sys.stderr)
        return 2
    if fault is not None:
        place = "" if fault[0] is None else f"event {fault[0]}: "
        print(f"NOT as sealed: {place}{fault[1]}")
        return 1
    print(f"the first {size} events are as they were sealed; the signature was not checked")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
