"""The persistent map behaves as a dict that nobody can change."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.pmap import PMap

KEYS = st.integers(-5, 400) | st.text(max_size=2)
ITEMS = st.dictionaries(KEYS, st.integers(), max_size=300)


@given(ITEMS, st.lists(st.tuples(KEYS, st.integers()), max_size=60))
def test_it_is_a_dict(start: dict[int | str, int], sets: list[tuple[int | str, int]]):
    """Whatever is set in whatever order, it holds what a dict holds."""
    plain, map = dict(start), PMap(start)
    for key, value in sets:
        plain[key] = value
        map = map.set(key, value)
    assert dict(map.items()) == plain
    assert len(map) == len(plain)
    assert all(key in map and map[key] == map.get(key) == plain[key] for key in plain)
    assert map == plain
    assert hash(map) == hash(PMap(plain))


@given(ITEMS, KEYS, st.integers())
def test_setting_leaves_the_old_one_alone(start: dict[int | str, int], key: int | str, value: int):
    """Old and new share what did not change, and nothing else."""
    old = PMap(start)
    new = old.set(key, value)
    assert dict(old.items()) == start
    assert dict(new.items()) == {**start, key: value}


@settings(max_examples=10)
@given(st.integers(0, 5000))
def test_it_grows_from_nothing(size: int):
    """Through every rebuild of its buckets."""
    map: PMap[int, int] = PMap()
    for at in range(size):
        map = map.set(at, -at)
    assert dict(map.items()) == {at: -at for at in range(size)}


def test_a_set_copies_little():
    """Neither of the two levels it copies grows faster than the square root of the size."""
    map: PMap[int, int] = PMap()
    for at in range(20_000):
        map = map.set(at, at)
    levels = [len(map._buckets), *(len(bucket) for bucket in map._buckets)]
    assert max(levels) <= 2 * 20_000**0.5 + 32


def test_an_absent_key_is_an_error_or_the_default():
    """As with a dict."""
    map = PMap({"a": 1})
    with pytest.raises(KeyError):
        map["b"]
    assert (map.get("b"), map.get("b", 2), "b" in map) == (None, 2, False)


def test_maps_differ_by_key_and_value():
    """Equality looks at both."""
    assert PMap({"a": 1}) != PMap({"a": 2})
    assert PMap({"a": 1}) != PMap({"b": 1})
    assert PMap({"a": 1}) != [("a", 1)]


def test_it_shows_its_items():
    """In messages and in the REPL."""
    assert repr(PMap({"a": 1})) == "PMap({'a': 1})"


def test_it_can_be_read_where_text_hashes_differently():
    """It travels to another process with every key still found."""
    map = PMap({str(at): at for at in range(200)})
    code = (
        "import pickle, sys; map = pickle.load(sys.stdin.buffer);"
        "assert all(map[str(at)] == at for at in range(200))"
    )
    seed = {**os.environ, "PYTHONHASHSEED": "12345"}
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(map), env=seed, check=True)
    assert pickle.loads(pickle.dumps(map)) == map
