"""The hashes are those of docs/reference/file-format.md, byte for byte."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

import pytest

from statelog.infrastructure.store.row import COLUMNS, Draft, Row, Stamp, hash_of, stamped
from tests.house.repo import ROOT

PAGE = (ROOT / "docs" / "reference" / "file-format.md").read_text(encoding="utf-8")
VECTORS = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.S)[1])  # type: ignore[index]


def row_of(vector: dict[str, Any]) -> Row:
    values = {column: vector[column] for column in COLUMNS}
    data = values["data"]
    return Row(
        **{
            **values,
            "data": None if data is None else data.encode(),
            "data_hash": bytes.fromhex(vector["data_hash"]),
            "hash": bytes.fromhex(vector["hash"]),
        }
    )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda each: each["stream"])
def test_the_page_has_the_hashes_of_the_code(vector: dict[str, Any]):
    """The leaf is SHA-256 of a zero byte and the header the page shows."""
    row = row_of(vector)
    assert sha256(b"\0" + bytes.fromhex(vector["header"])).digest() == row.hash
    assert hash_of(row) == row.hash
    if row.data is not None:
        assert sha256(row.data).digest() == row.data_hash


def test_a_new_row_has_both_hashes():
    """What is written at once checks afterwards."""
    stamp = Stamp("bob", "c-1", None, "s@1", '{"a":1}')
    drafts = [Draft("s", 1, "a.b.c", 1, b"{}"), Draft("t/ä", 4, "a.b.d", 2, b"")]
    for row in stamped(drafts, stamp, 7, 123):
        assert hash_of(row) == row.hash
        assert row.data is not None
        assert sha256(row.data).digest() == row.data_hash


@pytest.mark.parametrize("column", [name for name in COLUMNS if name not in ("data", "hash")])
def test_every_field_of_the_header_is_covered(column: str):
    """Changing any of them changes the hash; the payload is covered by its own."""
    row = row_of(VECTORS[1])
    value = getattr(row, column)
    other = value + 1 if isinstance(value, int) else value[:-1]
    assert hash_of(row._replace(**{column: other})) != row.hash


def test_neighbouring_fields_cannot_trade_bytes():
    """Lengths come first, so moving a character from one text to the next is another header."""
    row = row_of(VECTORS[0])
    moved = row._replace(stream=row.stream + row.name[0], name=row.name[1:])
    null, empty = row._replace(meta=None), row._replace(meta="")
    assert len({hash_of(each) for each in (row, moved, empty)}) == 3
    assert hash_of(null) == row.hash
