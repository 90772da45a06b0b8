"""Text from elsewhere becomes JSON values, or is refused by its place in bounded time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid, Malformed
from statelog.infrastructure import documents
from statelog.infrastructure.documents import parse_json, parse_text, read_document, yaml_of

_TEXT = st.text(max_size=4)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80)
@given(_JSON)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    """Also what is read slowly, because something in it had to be looked at closely."""
    text = json.dumps(value)
    assert parse_json(text, "x") == value
    assert documents._examined(text, "x") == value


@settings(max_examples=40)
@given(_JSON)
def test_yaml_that_was_written_is_read_back(value: Any) -> None:
    """Numbers as numbers, text as text, whatever it looks like; no aliases are written."""
    shared = [value, value]
    assert parse_text(yaml_of(shared).encode(), "x", yaml=True) == shared


@pytest.mark.parametrize(
    "word", ["no", "1e3", "0x1", "2020-01-01", "~", "1_000", "=", "<<", "a: b"]
)
def test_text_that_looks_like_something_else_stays_text(word: str) -> None:
    """YAML would read these words as other types if they stood there plain."""
    assert parse_text(yaml_of({word: word}).encode(), "x", yaml=True) == {word: word}


@pytest.mark.parametrize(
    ("text", "field", "why"),
    [
        ('{"a": [1, {"b": 1, "b": 2}]}', "x.a[1].b", "appears twice"),
        ('{"a": 1, "a": 1}', "x.a", "appears twice"),
        ('{"a": [0, NaN]}', "x.a[1]", "is nan, which JSON cannot hold"),
        ('{"a": -Infinity}', "x.a", "is -inf, which JSON cannot hold"),
        ('{"a": 1e999}', "x.a", "is inf, which JSON cannot hold"),
        ('{"a": 18446744073709551616}', "x.a", "is an integer beyond 64 bits"),
        ('{"a": -9223372036854775809}', "x.a", "is an integer beyond 64 bits"),
        (f'{{"a": {"9" * 10_000}}}', "x.a", "is an integer beyond 64 bits"),
        ('{"a": "\\ud800"}', "x.a", "has a lone surrogate at character 0"),
        ('{"\\udc00b": 1}', "x['\\\\udc00b']", "has a lone surrogate at character 0"),
        ("[" * 300 + "]" * 300, "x" + "[0]" * 26 + "\N{HORIZONTAL ELLIPSIS}", "200 levels deep"),
        ("[" * 100_000, "x", "is nested too deeply"),
        ("", "line 1, column 1", "is not JSON"),
        ('{"a": 1,}', "line 1, column 9", "is not JSON"),
        ("[1]\n[2]", "line 2, column 1", "is not JSON"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_place(text: str, field: str, why: str) -> None:
    """It does not decode: line and column, or the path of keys."""
    with pytest.raises(Malformed) as refused:
        parse_json(text, "x")
    assert refused.value.field == field
    assert why in refused.value.why


def test_the_deepest_nesting_that_is_taken_is_taken_by_both_ways() -> None:
    """The quick way and the slow one draw the line at the same level."""
    limit = documents.DEPTH_LIMIT
    fits, deep = ("[" * n + "]" * n for n in (limit + 1, limit + 2))
    assert parse_json(fits, "x") == documents._examined(fits, "x")
    for way in (parse_json, documents._examined):
        with pytest.raises(Malformed, match="levels deep"):
            way(deep, "x")


@pytest.mark.parametrize(
    ("data", "place"), [(b"\xff", "line 1, column 1"), (b"{\n\xc3(", "line 2")]
)
def test_what_is_not_utf_8_is_refused(data: bytes, place: str) -> None:
    """By line and column, in JSON and in YAML."""
    for yaml in (False, True):
        with pytest.raises(Malformed, match="is not UTF-8 text") as refused:
            parse_text(data, "x", yaml=yaml)
        assert refused.value.field.startswith(place)


def test_a_yaml_bomb_is_refused_by_its_first_alias() -> None:
    """Nothing is expanded before."""
    bomb = "a: &a [x, x]\n" + "".join(f"{k}: &{k} [*a, *a]\n" for k in "bcdefgh")
    with pytest.raises(Malformed, match="line 2, column 8: aliases are not allowed"):
        parse_text(bomb.encode(), "x", yaml=True)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """The limit is that of its kind, and said."""
    path = tmp_path / "x.json"
    path.write_text("[1, 2]")
    assert read_document(path, "", 6) == [1, 2]
    with pytest.raises(Invalid, match=r"x\.json: is larger than 5 bytes, the limit for JSON"):
        read_document(path, "", 5)
