"""What a log has used of its lifecycles: counts, how long things stayed where, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Refused
from statelog.infrastructure.audit.coverage import coverage
from statelog.infrastructure.audit.rules import load
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.clock import FakeClock
from statelog.infrastructure.testing.contracts import COUNTER, add, start, stop
from statelog.infrastructure.usage import Usage, long, quantile
from tests.domain.desk import TICKET, Status, close, open_ticket
from tests.infrastructure.audit.legal import legal, rules


def test_rows_stays_and_refusals_are_counted(journal: Journal, journal_clock: FakeClock):
    """One ticket is closed after ten seconds; one is open, and closing it was refused twice."""
    for id in ("1", "2"):
        journal.execute(TICKET, id, open_ticket, title="No heat", actor="bob")
    journal_clock.advance(10)
    journal.execute(TICKET, "1", close, answer="a", actor="bob")
    for _ in range(2):
        with pytest.raises(Refused):
            journal.execute(TICKET, "2", close, answer="", actor="bob")
    (usage,) = coverage(journal.rows(), load([TICKET]), journal.refusals()).values()
    opened, closed = ("NEW", "Opened"), ("OPEN", "Closed")
    assert usage.taken == {opened: 2, closed: 1}
    assert list(usage.waits[closed]) == [10_000_000]
    assert opened not in usage.waits
    assert {status: list(found) for status, found in usage.stays.items()} == {"OPEN": [10_000_000]}
    assert {name: count for name, count in usage.now.items() if count} == {"OPEN": 1, "CLOSED": 1}
    assert usage.refused == {("OPEN", "answer"): 2}
    assert usage.visited == {"OPEN", "CLOSED"}
    assert opened not in usage.unused
    assert ("OPEN", "Noted") in usage.unused
    told = usage.data()
    closing = next(row for row in told["rows"] if row["type"] == "Closed")
    assert (closing["count"], closing["median_s"], closing["p95_s"]) == (1, 10.0, 10.0)
    assert told["refused"] == [{"status": "OPEN", "rule": "answer", "count": 2}]
    assert usage.notes().rows[closed] == "1 x, median 10 s, p95 10 s"
    assert usage.notes().statuses["OPEN"] == [
        "1 now",
        "left 1 x, median 10 s, p95 10 s",
        "refused 2 x: answer",
    ]


def test_a_refusal_is_of_the_status_it_met(journal: Journal):
    """Not of the one that the stream is in at the end; also before the first event."""
    for _ in range(2):
        with pytest.raises(Refused):
            journal.execute(TICKET, "1", close, answer="", actor="bob")
        if journal.head() == 0:
            journal.execute(TICKET, "1", open_ticket, title="No heat", actor="bob")
    journal.execute(TICKET, "1", close, answer="a", actor="bob")
    (usage,) = coverage(journal.rows(), load([TICKET]), journal.refusals()).values()
    assert usage.refused == {("NEW", "answer"): 1, ("OPEN", "answer"): 1}


def test_things_inside_a_stream_are_counted_each():
    """Steps of all attempts, by the names of their own table."""
    rows = legal(1, 120)
    used = coverage(rows, rules())
    steps = [row.name.rsplit(".", 1)[1] for row in rows if ".attempt.step_" in row.name]
    assert sum(used["step"].taken.values()) == len(steps) > 0
    started = sum(row.name.endswith(".step_started") for row in rows)
    assert used["step"].taken["PENDING", "StepStarted"] == started


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_every_event_of_a_legal_log_is_counted_once(seed: int):
    """In its aggregate's table; what is in a status now came in and did not leave."""
    rows = legal(seed, 100)
    used = coverage(rows, rules())
    aggregates = [used[each.aggregate.lifecycle.name] for each in rules().book.aggregates]
    assert sum(sum(usage.taken.values()) for usage in aggregates) == len(rows)
    streams = len({row.stream for row in rows})
    assert sum(sum(usage.now.values()) for usage in aggregates) == streams
    assert all(count >= 0 for usage in aggregates for count in usage.now.values())


def test_erased_and_foreign_events_do_no_harm(journal: Journal):
    """A name is enough for the table of a stream; what nobody declared is passed over."""
    journal.execute(COUNTER, "a", start, actor="bob")
    journal.execute(COUNTER, "a", add, by=1, actor="bob")
    journal.execute(COUNTER, "a", stop, actor="bob")
    erased = [row._replace(data=None) for row in journal.rows()]
    (usage,) = coverage(erased, load([COUNTER])).values()
    assert sum(usage.taken.values()) == 3
    assert coverage(erased, load([])) == {}


@given(st.lists(st.integers(0, 1000), min_size=1), st.sampled_from([0.5, 0.95]))
def test_quantiles_are_values_that_so_many_do_not_exceed(values: list[int], share: float):
    """At least that share is not above it, and it is the least such value."""
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


def test_durations_are_for_people():
    """In the unit in which they are read."""
    shown = {0: "0 ms", 500: "500 us", 1500: "2 ms", 4_200_000: "4.2 s", 90_000_000: "90 s"}
    shown |= {12 * 60_000_000: "12 min", 3 * 3_600_000_000: "3 h", 8 * 86_400_000_000: "8 d"}
    assert {micros: long(micros) for micros in shown} == shown
    with pytest.raises(ValueError, match="nothing"):
        quantile([], 0.5)


def test_a_status_is_left_only_by_a_row_to_another():
    """A row that keeps the status says how long it has been that already."""
    usage = Usage(TICKET.lifecycle)
    entered = usage.moved(Status.NEW, "Opened", Status.OPEN, None, 100)
    assert usage.moved(Status.OPEN, "Noted", Status.OPEN, entered, 150) == 100
    assert usage.moved(Status.OPEN, "Closed", Status.CLOSED, 100, 180) == 180
    assert list(usage.waits["OPEN", "Noted"]) == [50]
    assert list(usage.stays["OPEN"]) == [80]
