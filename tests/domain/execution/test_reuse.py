"""Fingerprints, what differs between two, and reuse (5.3, 5.4, D15)."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.execution.reuse import (
    DIFFERENT,
    NO_MARKER,
    Fingerprint,
    InputHash,
    Reuse,
    Run,
    differences,
    fingerprint,
    reuse,
)
from statelog.domain.pmap import PMap

PARAMS: dict[str, Any] = {"threads": 4, "mode": "fast"}
OUTPUTS = {"report": "report.html"}
INPUTS: dict[str, InputHash] = {"reads": {"sha256": "ab"}}
NOW = fingerprint(PARAMS, OUTPUTS, INPUTS)


def test_the_value_is_the_hash_of_one_json_mapping():
    """5.3, spelled out: sorted keys, and outputs and inputs only when there are any."""
    text = '{"inputs":{"reads":{"sha256":"ab"}},"outputs":{"report":"report.html"},'
    text += '"params":{"mode":"fast","threads":4}}'
    assert NOW.value == f"sha256:{sha256(text.encode()).hexdigest()}"
    bare = sha256(b'{"params":{"a":1}}').hexdigest()
    assert fingerprint({"a": 1}, {}, {}).value == f"sha256:{bare}"


@pytest.mark.parametrize(
    ("params", "outputs", "inputs", "differs"),
    [
        ({**PARAMS, "threads": 8}, OUTPUTS, INPUTS, ("params.threads",)),
        ({**PARAMS, "extra": None}, OUTPUTS, INPUTS, ("params.extra",)),
        ({"threads": 4}, OUTPUTS, INPUTS, ("params.mode",)),
        (PARAMS, {"report": "other.html"}, INPUTS, ("outputs.report",)),
        (PARAMS, {}, INPUTS, ("outputs.report",)),
        (PARAMS, OUTPUTS, {"reads": {"sha256": "cd"}}, ("inputs.reads",)),
        (PARAMS, OUTPUTS, {"reads": {"dirhash": "ab"}}, ("inputs.reads",)),
        (PARAMS, OUTPUTS, {"reads": {"missing": True}}, ("inputs.reads",)),
        ({**PARAMS, "mode": 1}, {}, {}, ("inputs.reads", "outputs.report", "params.mode")),
    ],
)
def test_each_change_has_another_value_and_names_its_parts(
    params: dict[str, Any],
    outputs: dict[str, str],
    inputs: dict[str, InputHash],
    differs: tuple[str, ...],
):
    """cases 34 and 35 on this level."""
    then = fingerprint(params, outputs, inputs)
    assert then.value != NOW.value
    assert differences(NOW.parts, then.parts) == differs


def test_no_part_holds_a_value():
    """Parts are stored with every success, so they stay small."""
    big = fingerprint({"text": "x" * 10_000}, {}, {})
    assert len(json.dumps(dict(big.parts))) < 100


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(params: dict[str, Any], random: Any):
    """The same plan read from another file is the same plan."""
    keys = list(params)
    random.shuffle(keys)
    assert fingerprint({key: params[key] for key in keys}, {}, {}) == fingerprint(params, {}, {})


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=3), st.dictionaries(st.text(), JSON, max_size=3))
def test_values_differ_exactly_when_parts_do(before: dict[str, Any], now: dict[str, Any]):
    """What explains a run never contradicts the marker."""
    one, two = fingerprint(before, {}, {}), fingerprint(now, {}, {})
    assert (one.value == two.value) == (differences(one.parts, two.parts) == ())


def test_what_json_does_not_know_is_text():
    """Paths, other mappings and sets have one form, whatever order they were built in."""
    named = fingerprint({"a": PurePosixPath("/x")}, {}, {})
    assert named == fingerprint({"a": "/x"}, {}, {})
    assert fingerprint(PMap({"a": 1}), {}, {}) == fingerprint({"a": 1}, {}, {})
    assert fingerprint({"a": {"b", "a"}}, {}, {}) == fingerprint({"a": ["a", "b"]}, {}, {})
    assert fingerprint({"a": (1, "\ud800")}, {}, {}) == fingerprint({"a": [1, "\ud800"]}, {}, {})


def test_a_matching_marker_and_all_outputs_are_reused():
    """case 33; whitespace around the marker does not count."""
    assert reuse(NOW.value, NOW, ()) == Reuse()
    assert reuse(f"\n{NOW.value} \n", NOW, (), {}) == Reuse()


def test_without_a_marker_a_step_runs_and_says_so():
    """case 42: version 2 took the marker away before it failed, so version 1 runs again."""
    assert reuse(None, NOW, (), NOW.parts) == Run((NO_MARKER,))


def test_a_changed_step_says_what_differs():
    """cases 34 and 35, and D15."""
    before = fingerprint({**PARAMS, "threads": 8}, {}, INPUTS)
    verdict = reuse(before.value, NOW, (), before.parts)
    assert verdict == Run(("outputs.report differs", "params.threads differs"))


@pytest.mark.parametrize("parts", [None, {}, NOW.parts], ids=["none", "empty", "equal"])
def test_a_marker_nobody_can_explain_is_just_different(parts: Any):
    """A marker of an older or unknown success still runs the step, with a reason."""
    assert reuse("sha256:00", NOW, (), parts) == Run((DIFFERENT,))


def test_a_missing_output_runs_the_step_and_names_the_path():
    """case 36: also when the marker matches."""
    verdict = reuse(NOW.value, NOW, ("/w/report.html",))
    assert verdict == Run(("output /w/report.html is missing",), ("/w/report.html",))
    assert reuse(None, NOW, ["/a", "/b"]) == Run((NO_MARKER,))


def test_an_empty_marker_is_no_fingerprint():
    """A file truncated by a crash matches nothing."""
    assert reuse("", Fingerprint("sha256:1", {}), ()) == Run((DIFFERENT,))
