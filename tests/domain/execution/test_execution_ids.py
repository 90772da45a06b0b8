"""Execution IDs: form, order, allocation (6.1 to 6.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from statelog.domain.execution.execution_ids import (
    can_name_attempt,
    format_id,
    is_canonical,
    microseconds,
    next_id,
    order_key,
    timestamp_of,
)
from statelog.domain.execution.faults import OrchestrationError

NOON = microseconds(datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=UTC))
NOON_ID = "20240229T120000000007Z_00ff"
LAST_ID = "99991231T235959999999Z_0000"

instants = st.datetimes(timezones=st.just(UTC)).map(microseconds)
suffixes = st.text("0123456789abcdef", min_size=4, max_size=4)
ids = st.builds(format_id, instants, suffixes)


def test_an_id_is_the_utc_time_to_the_microsecond_and_four_hex():
    assert format_id(NOON, "00ff") == NOON_ID
    assert format_id(0, "abcd") == "19700101T000000000000Z_abcd"
    assert format_id(-1, "abcd") == "19691231T235959999999Z_abcd"


@given(instants, suffixes)
def test_every_id_is_canonical_and_gives_its_time_back(time_us: int, suffix: str):
    assert timestamp_of(format_id(time_us, suffix)) == time_us


@pytest.mark.parametrize(
    "other",
    [
        "",
        "20240229T120000000007Z_0ff",
        "20240229T120000000007Z_000ff",
        "20240229T120000000007Z_00FF",
        "20240229t120000000007Z_00ff",
        "20240229T120000000007z_00ff",
        "20241301T120000000007Z_00ff",
        "20240230T120000000007Z_00ff",
        "20230229T120000000007Z_00ff",
        "00000101T120000000007Z_00ff",
        "20240229T240000000007Z_00ff",
        "20240229T126000000007Z_00ff",
        "20240229T120060000007Z_00ff",
        "2024229T120000000007Z_00ff",
        "20240229T12000000007Z_00ff",
        " 20240229T120000000007Z_00ff",
        "20240229T120000000007Z_00ff\n",
        "20240229T120000000007Z_00ff ",
        "\u0662\u0660240229T120000000007Z_00ff",
        "20240229T120000000007Z_00f\uff11",
        "exec_20240229T120000000007Z_00ff",
        "20240229T120000000007Z-00ff",
    ],
)
def test_what_only_looks_like_an_id_is_not_canonical(other: str):
    """6.1 lists them: widths, case, dates that are not, padding, other scripts, a prefix."""
    assert not is_canonical(other)
    assert timestamp_of(other) is None


@given(ids, ids)
def test_canonical_ids_order_by_time_and_the_suffix_only_breaks_ties(one: str, other: str):
    by_time = (timestamp_of(one) or 0, one), (timestamp_of(other) or 0, other)
    assert (order_key(one) < order_key(other)) == (by_time[0] < by_time[1])


@given(ids, st.text())
def test_every_canonical_id_is_above_every_other(canonical: str, other: str):
    if not is_canonical(other):
        assert order_key(other) < order_key(canonical)


def test_other_ids_order_as_text():
    assert sorted(["zz", NOON_ID, "exec_2", "exec_10"], key=order_key) == [
        *("exec_10", "exec_2", "zz"),
        NOON_ID,
    ]


def test_a_frozen_clock_gives_the_next_microsecond():
    """Case 97."""
    first = next_id(NOON, None, None, "ffff")
    second = next_id(NOON, None, first, "0000")
    assert (timestamp_of(first), timestamp_of(second)) == (NOON, NOON + 1)


def test_a_clock_set_back_gives_the_next_microsecond_across_plans_too():
    """Case 97: `last` is the allocator's, whatever plan it was for."""
    of_another_plan = next_id(NOON, None, None, "ffff")
    assert timestamp_of(next_id(NOON - 10**9, None, of_another_plan, "0000")) == NOON + 1


def test_a_restart_with_the_clock_behind_stays_above_the_slots_last_id():
    """Case 98: the floor is the slot's, also that of an attempt that never started."""
    assert timestamp_of(next_id(NOON - 60, NOON_ID, None, "0000")) == NOON + 1


def test_an_id_that_is_not_canonical_sets_no_floor():
    """Case 99: neither another plan's ID (it is not passed) nor an imported odd one."""
    odd = "exec_99991231T235959999999Z_0000"
    assert next_id(NOON, odd, odd, "00ff") == NOON_ID


def test_a_taken_id_is_followed_by_a_later_time_never_by_another_suffix():
    """Case 101: the taken one is not renamed."""
    assert next_id(NOON, None, NOON_ID, "00fe") == "20240229T120000000008Z_00fe"


@given(instants, st.none() | ids | st.text(), st.none() | ids | st.text(), suffixes)
def test_the_next_id_orders_above_now_floor_and_last(
    now_us: int, floor: str | None, last: str | None, suffix: str
):
    given_ids = [bound for bound in (floor, last) if bound is not None]
    assume(not any(is_canonical(bound) and bound >= LAST_ID[:-4] for bound in given_ids))
    allocated = next_id(now_us, floor, last, suffix)
    assert all(order_key(allocated) > order_key(bound) for bound in given_ids)
    allocated_us = timestamp_of(allocated)
    assert allocated_us is not None
    assert allocated_us >= now_us
    assert allocated.endswith(f"Z_{suffix}")


@pytest.mark.parametrize("bounds", [(LAST_ID, None), (None, LAST_ID)])
def test_after_the_last_representable_instant_there_is_no_id(
    bounds: tuple[str | None, str | None],
):
    with pytest.raises(OrchestrationError, match="no execution ID"):
        next_id(NOON, bounds[0], bounds[1], "0000")


@pytest.mark.parametrize("suffix", ["", "fff", "fffff", "FFFF", "12g4", "\u0661234", "123\n", 1234])
def test_a_wrong_suffix_source_is_an_error(suffix: Any):
    with pytest.raises(OrchestrationError, match="suffix"):
        next_id(NOON, None, None, suffix)


@pytest.mark.parametrize("now", [None, 1.5, True, "0"])
def test_a_clock_that_does_not_count_microseconds_is_an_error(now: Any):
    with pytest.raises(OrchestrationError, match="clock"):
        next_id(now, None, None, "0000")
    with pytest.raises(OrchestrationError, match="clock"):
        format_id(now, "0000")


def test_a_naive_clock_is_an_error():
    with pytest.raises(OrchestrationError, match="zone"):
        microseconds(datetime(2024, 2, 29))


def test_a_clock_of_another_zone_counts_from_the_same_epoch():
    plus_two = timezone(timedelta(hours=2))
    assert microseconds(datetime(2024, 2, 29, 14, 0, 0, 7, tzinfo=plus_two)) == NOON


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        (NOON_ID, True),
        ("exec_1", True),
        ("a b", True),
        ("x" * 255, True),
        *((name, False) for name in ("", ".", "..", "a/b", "a\\b", "a\0b", "x" * 256)),
        *((name, False) for name in ("\u00e9" * 128, "\ud800", None, 7)),
    ],
)
def test_a_callers_own_id_must_name_one_directory(name: object, usable: bool):
    assert can_name_attempt(name) is usable
