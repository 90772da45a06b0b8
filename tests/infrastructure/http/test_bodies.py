"""How many values a body has is known without making them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.infrastructure.http import bodies
from statelog.infrastructure.http.bodies import Media, has_many_values, media_of, parse
from statelog.infrastructure.http.failures import Failure

TEXTS = st.text(st.sampled_from('a\\",[{:]}\N{GREEK SMALL LETTER ALPHA}'))
DOCUMENTS = st.recursive(
    st.none() | st.integers(0, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


def marks(value: Any) -> int:
    """What opens and separates values, strings left out."""
    if isinstance(value, list | dict):
        items = list(value.values()) if isinstance(value, dict) else value
        return 1 + max(0, len(items) - 1) + sum(map(marks, items))
    return 0


@given(document=DOCUMENTS, ascii_only=st.booleans(), limit=st.integers(0, 12))
def test_values_are_counted_outside_of_strings(document: Any, ascii_only: bool, limit: int):
    """Whatever strings hold, and however they are escaped."""
    data = json.dumps(document, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "VALUES", limit)
        assert has_many_values(data) is (marks(document) > limit)


@given(data=st.binary())
def test_what_is_no_json_is_counted_too(data: bytes):
    """Any bytes get an answer, and then a `Malformed` or a value."""
    has_many_values(data)


def test_a_body_with_too_many_values_is_413():
    """And one at the limit is not."""
    full = b"[" + b"1," * (bodies.VALUES - 1) + b"1]"
    assert len(parse(full, Media(yaml=False))) == bodies.VALUES
    with pytest.raises(Failure) as refused:
        parse(full[:-1] + b",1]", Media(yaml=False))
    assert refused.value.status == 413


def test_the_content_type_says_how_a_body_is_read():
    """JSON is JSON, the others are YAML."""
    assert not media_of({"content-type": "application/json"}).yaml
    assert media_of({"content-type": "text/yaml; charset=utf-8"}).yaml
