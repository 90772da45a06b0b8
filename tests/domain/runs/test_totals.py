"""Totals and metrics of a run (4.4, 4.5, P16)."""

from __future__ import annotations

from dataclasses import replace

from statelog.domain.runs.activities import record_transfer
from statelog.domain.runs.events import TaskKept
from statelog.domain.runs.handle import Handle
from statelog.domain.runs.metrics import queued_for, stages
from statelog.domain.runs.run import RUN
from statelog.domain.runs.totals import makespan_counts, totals, within
from tests.domain.runs.stories import BEGUN, completed, moved, told


def test_stages_follow_what_the_runtime_reports():
    """planning case 63: submitted 100, started 103, container 105, finished 115, price 2."""
    handle = Handle(started_at=103.0, submitted_at=100.0, container_started_at=105.0)
    took = stages(handle, finished_at=115.0, queued_at=90.0, price_per_second=2.0)
    figures = (took.queue_seconds, took.overhead_seconds, took.runtime_seconds, took.cost)
    assert figures == (3.0, 2.0, 10.0, 20.0)


def test_stages_without_a_container():
    """No overhead is known, and the queue counts from when it was queued."""
    took = stages(Handle(started_at=103.0), finished_at=115.0, queued_at=90.0, price_per_second=2.0)
    assert (took.queue_seconds, took.overhead_seconds, took.runtime_seconds) == (13.0, 0.0, 12.0)


def test_no_stage_is_negative():
    """Clocks of several machines are not one clock."""
    handle = Handle(started_at=103.0, submitted_at=110.0, container_started_at=102.0)
    took = stages(handle, finished_at=90.0, queued_at=None, price_per_second=2.0)
    assert (took.queue_seconds, took.overhead_seconds, took.runtime_seconds) == (0.0, 0.0, 0.0)
    assert queued_for(5.0, None, None) == 0.0


def test_a_container_that_began_before_its_allocation_did_not():
    """4.4: the runtime counts from the later of the two."""
    handle = Handle(started_at=103.0, container_started_at=102.0)
    took = stages(handle, finished_at=115.0, queued_at=None, price_per_second=1.0)
    assert (took.runtime_seconds, took.overhead_seconds, took.cost) == (12.0, 0.0, 12.0)


def test_a_real_makespan_counts_from_the_first_start():
    """P16: and a simulated one from 0; each says which."""
    events = told(*completed("a", 105.0), *completed("b", 120.0))
    assert totals(RUN.fold(events)).makespan_seconds == 25.0
    simulated = replace(BEGUN, mode="simulation")
    assert totals(RUN.fold((simulated, *events[1:]))).makespan_seconds == 130.0
    assert makespan_counts("simulation") != makespan_counts("real")


def test_what_was_kept_is_not_counted():
    """It was paid for and waited for in another run."""
    kept = TaskKept("a", "r0", "m", "local", 5.0, 9.0)
    events = told(*completed("a", 105.0), *completed("b", 120.0))
    of_b = [event for event in events if getattr(event, "activity_id", "") == "b"]
    assert totals(RUN.fold((BEGUN, kept, *of_b))).compute_seconds == 10.0
    assert totals(RUN.fold((BEGUN, kept, *of_b))).makespan_seconds == 10.0
    assert totals(RUN.fold((BEGUN, kept))).makespan_seconds == 0.0


def test_transfers_cost_and_count():
    once = (record_transfer, {"transfer": moved("a", "b", 2.0, 30)})
    found = totals(RUN.fold(told(*completed("a", 105.0), once)))
    assert (found.cost, found.transfer_seconds, found.transferred_bytes) == (20.5, 2.0, 30)


def test_limits_are_kept_up_to_the_last_bit():
    """A limit of 0 is none, and reaching it is keeping it."""
    assert within(10.0, 5.0, 10.0, 5.0)
    assert not within(10.0001, 5.0, 10.0, 0.0)
    assert not within(10.0, 5.0001, 0.0, 5.0)
    assert within(1e9, 1e9, 0.0, 0.0)
