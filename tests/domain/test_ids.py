"""Stream names: every text has one, no two texts share one, and a prefix is a range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.ids import decode_part, encode_part, stream_name, stream_parts

PARTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(PARTS)
def test_a_part_comes_back(part: str):
    """Decoding is the inverse of encoding."""
    assert decode_part(encode_part(part)) == part


@given(PARTS)
def test_an_encoded_part_is_plain(part: str):
    """Nothing but unreserved characters and upper-case percent codes, so `/` only separates."""
    plain = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%")
    assert set(encode_part(part)) <= plain


@given(PARTS, PARTS)
def test_two_parts_have_two_names(one: str, other: str):
    """Encoding is injective."""
    assert (encode_part(one) == encode_part(other)) == (one == other)


@given(PARTS, PARTS, PARTS)
def test_a_prefix_is_a_range(plan: str, other: str, child: str):
    """What lies below p is exactly p itself and what sorts between `p/` and `p0`."""
    prefix = stream_name("plan/{}", plan)
    for stream in (prefix, stream_name("plan/{}/attempt/{}", (other, child)), f"{prefix}/slot"):
        below = stream == prefix or f"{prefix}/" <= stream < f"{prefix}0"
        assert below == (stream_parts(stream)[:2] == ("plan", plan))


@pytest.mark.parametrize(
    ("part", "encoded"),
    [("a b", "a%20b"), ("a/b", "a%2Fb"), ("50%", "50%25"), ("é", "%C3%A9"), ("-._~", "-._~")],
)
def test_parts_are_percent_encoded(part: str, encoded: str):
    """The form is fixed for ever: it is stored."""
    assert encode_part(part) == encoded


@pytest.mark.parametrize("part", ["", "\ud800"])
def test_a_part_is_text_that_can_be_stored(part: str):
    """An empty part would vanish, a lone surrogate has no bytes."""
    with pytest.raises(Invalid, match=r"empty|UTF-8"):
        encode_part(part)


@pytest.mark.parametrize("id", ["p", ("p", "e", "x")])
def test_a_pattern_takes_as_many_parts_as_it_has_places(id: str | tuple[str, ...]):
    """One too few and one too many are refused."""
    with pytest.raises(ValueError, match="takes 2 parts"):
        stream_name("plan/{}/attempt/{}", id)


def test_braces_in_an_id_are_text():
    """An id is never taken for a pattern."""
    assert stream_parts(stream_name("plan/{}/attempt/{}", ("{}", "{0}"))) == (
        "plan",
        "{}",
        "attempt",
        "{0}",
    )
