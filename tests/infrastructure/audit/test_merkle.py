"""The root is that of RFC 6962: by the vectors of Certificate Transparency, and by its words."""

from __future__ import annotations

from hashlib import sha256

import pytest

from statelog.infrastructure.audit.merkle import Tree

ENTRIES = [
    *("", "00", "10", "2021", "3031", "40414243", "5051525354555657"),
    "606162636465666768696a6b6c6d6e6f",
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [sha256(b"\0" + bytes.fromhex(entry)).digest() for entry in ENTRIES]


def by_the_words(leaves: list[bytes]) -> bytes:
    """Section 2.1: split at the largest power of two smaller than the number of leaves."""
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\1" + by_the_words(leaves[:split]) + by_the_words(leaves[split:])).digest()


@pytest.mark.parametrize("size", range(len(ROOTS)))
def test_the_vectors_of_certificate_transparency(size: int):
    """Trees of 0 to 8 entries have the roots that every implementation has."""
    assert Tree(LEAVES[:size]).root.hex() == ROOTS[size]


def test_every_size_has_the_root_of_the_definition():
    """Leaf by leaf, also where the tree is far from full; asking for the root changes nothing."""
    leaves = [sha256(bytes([number])).digest() for number in range(140)]
    tree = Tree()
    for size, leaf in enumerate(leaves):
        assert (tree.size, tree.root) == (size, by_the_words(leaves[:size]))
        tree.add(leaf)


def test_a_long_log_needs_little_memory():
    """One hash for each set bit of the size, whatever the log."""
    tree = Tree()
    for number in range(5000):
        tree.add(number.to_bytes(32, "big"))
        assert len(tree._full) == tree.size.bit_count()
