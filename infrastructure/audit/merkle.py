"""The Merkle tree hash of RFC 6962, section 2.1, over leaf hashes that are stored already."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

EMPTY = sha256().digest()
"""The root of a tree without leaves."""

_NODE = b"\1"


class Tree:
    """A tree that grows leaf by leaf. It keeps one hash for each set bit of its size."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._full: list[bytes] = []
        for leaf in leaves:
            self.add(leaf)

    def add(self, leaf: bytes) -> None:
        """Append a leaf hash of 32 bytes."""
        pairs = self.size
        while pairs & 1:
            leaf = sha256(_NODE + self._full.pop() + leaf).digest()
            pairs >>= 1
        self._full.append(leaf)
        self.size += 1

    @property
    def root(self) -> bytes:
        """The root over all leaves so far, 32 bytes."""
        if not self._full:
            return EMPTY
        *rest, right = self._full
        for left in reversed(rest):
            right = sha256(_NODE + left + right).digest()
        return right
