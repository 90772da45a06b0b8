"""The strategies draw what they say, and everything that they say."""

from __future__ import annotations

from enum import Enum
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FailedHealthCheck, Unsatisfiable

from statelog.domain import Aggregate, IllegalTransition, Lifecycle
from statelog.domain.execution.findings import Resolved
from statelog.domain.execution.preflight import Accepted, preflight
from statelog.domain.execution.spec import POLICIES
from statelog.domain.execution.step import step
from statelog.domain.ids import stream_name, stream_parts
from statelog.infrastructure.execution.strategies import plans
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import COLUMNS, Row, hash_of
from statelog.infrastructure.testing.contracts import NESTED
from statelog.infrastructure.testing.histories import (
    illegal_histories,
    interleavings,
    legal_histories,
    logs,
)
from statelog.infrastructure.testing.strategies import ids, text
from tests.domain.desk import (
    TICKET,
    Closed,
    Merged,
    Noted,
    Opened,
    Status,
    close,
    note,
    open_ticket,
)

FEW = settings(max_examples=40, deadline=None)


def drawn(strategy: Any, examples: int = 200) -> list[Any]:
    """What it draws, the same each time."""
    found: list[Any] = []

    @given(strategy)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def draw(value: Any) -> None:
        found.append(value)

    draw()
    return found


@given(legal_histories(TICKET))
@FEW
def test_a_legal_history_is_folded(history: Any):
    """Retired rows included: they are history."""
    TICKET.fold(history)


def test_every_event_is_in_some_legal_history():
    """Or tests would see a part of the table only; also no event at all, and many."""
    histories = drawn(legal_histories(TICKET))
    assert {type(event) for history in histories for event in history} == {*TICKET.lifecycle.events}
    assert {0, 12} <= set(map(len, histories))


@given(illegal_histories(TICKET))
@FEW
def test_an_illegal_history_fails_at_its_last_event(history: Any):
    """And not before."""
    state = TICKET.fold(history[:-1])
    with pytest.raises(IllegalTransition):
        TICKET.apply(state, history[-1])


def test_every_refused_pair_ends_some_illegal_history():
    """As many as the table refuses, in the statuses that are reached."""
    lifecycle = TICKET.lifecycle
    allowed = {(row.source, row.event) for row in lifecycle.rows}
    reached = [status for status in Status if status is not Status.LOST]
    refused = {(status, event) for status in reached for event in lifecycle.events} - allowed
    histories = drawn(illegal_histories(TICKET), 400)
    assert {(TICKET.fold(found[:-1]).status, type(found[-1])) for found in histories} == refused


def test_payloads_may_be_given():
    """Where a type says less than a rule."""
    only = legal_histories(TICKET, events={Opened: st.just(Opened("No heat"))})
    assert {found[0] for found in drawn(only) if found} == {Opened("No heat")}


def test_a_history_may_be_decided():
    """Then it keeps the rules too: no empty title, no note twice, and nothing that is retired."""
    decisions: dict[Any, Any] = {
        open_ticket: {"title": text()},
        note: {"text": st.sampled_from("ab")},
        close: {"answer": text()},
    }

    @given(legal_histories(TICKET, decisions=decisions, max_size=20))
    @FEW
    def check(history: Any) -> None:
        notes = [event.text for event in history if isinstance(event, Noted)]
        assert len(set(notes)) == len(notes)
        assert all(event.title.strip() for event in history if isinstance(event, Opened))
        assert Merged not in map(type, history)

    check()
    whole = drawn(legal_histories(TICKET, decisions=decisions))
    assert {type(event) for history in whole for event in history} == {Opened, Noted, Closed}


def test_a_table_that_refuses_nothing_has_no_illegal_history():
    """There is no example, rather than a wrong one."""

    class Light(Enum):
        ON = "on"

    rows = [(Closed, Light.ON, Light.ON)]
    lamp = Aggregate("lamp", _Lamp(Light.ON), lambda lamp, event: lamp, Lifecycle(Light.ON, rows))

    @given(illegal_histories(lamp))
    @settings(max_examples=5, database=None)
    def draw(history: Any) -> None:
        raise AssertionError(history)

    with pytest.raises((Unsatisfiable, FailedHealthCheck)):
        draw()


class _Lamp:
    def __init__(self, status: Any) -> None:
        self.status = status


SEQUENCES = (("a", "b", "c"), ("x", "y"), ())


@given(interleavings(SEQUENCES))
@FEW
def test_an_interleaving_keeps_each_order(merged: Any):
    """Nothing is lost, nothing doubled."""
    for number, sequence in enumerate(SEQUENCES):
        assert tuple(item for at, item in merged if at == number) == sequence
    assert len(merged) == 5


def test_every_order_is_there():
    """Ten of them."""
    merged = drawn(interleavings([range(3), range(2)]))
    assert len({tuple(number for number, _ in each) for each in merged}) == 10


@step
def work(ctx: Any) -> None:
    """Do nothing."""


@given(plans())
@FEW
def test_a_plan_passes_preflight(plan: Any):
    """And may be stored."""
    assert isinstance(preflight(plan, lambda module, name: Resolved(work)), Accepted)
    assert type(plan).from_json(plan.to_json()) == type(plan).from_json(plan.to_json())


def test_plans_have_every_form():
    """None, joins, steps listed before what they need, both policies."""
    found = drawn(plans())
    assert any(not plan.steps for plan in found)
    assert any(len(step.deps) == 3 for plan in found for step in plan.steps)
    assert {plan.failure_policy for plan in found} == set(POLICIES)
    assert any(plan.steps and plan.steps[0].deps for plan in found)


@given(ids(), ids(2))
@FEW
def test_ids_name_streams(id: str, pair: Any):
    """Whatever is in them comes back."""
    assert stream_parts(stream_name("ticket/{}", id)) == ("ticket", id)
    assert stream_parts(stream_name("desk/{}/ticket/{}", pair))[1::2] == pair


@given(logs(TICKET, NESTED))
@FEW
def test_a_log_is_as_a_store_holds_it(log: Any):
    """Dense positions and versions, times that never decrease, hashes, and legal histories."""
    assert [recorded.position for recorded in log] == list(range(1, len(log) + 1))
    assert [recorded.time for recorded in log] == sorted(recorded.time for recorded in log)
    streams: dict[str, list[Any]] = {}
    for recorded in log:
        streams.setdefault(recorded.stream, []).append(recorded)
        assert recorded.data_hash == sha256(recorded.data).digest()
        assert recorded.hash == hash_of(Row(*(getattr(recorded, name) for name in COLUMNS)))
    for stream, events in streams.items():
        assert [recorded.version for recorded in events] == list(range(1, len(events) + 1))
        aggregate = TICKET if stream.startswith("ticket/") else NESTED
        aggregate.fold(recorded.event for recorded in events)


def test_streams_of_a_log_are_shuffled():
    """Or it would say nothing about readers of one stream."""

    def mixed(log: Any) -> bool:
        order = [recorded.stream for recorded in log]
        return len(order) > 2 and order[0] == order[2] != order[1]

    assert any(mixed(log) for log in drawn(logs(TICKET), 60))


def test_histories_of_a_log_may_be_given():
    """By the aggregate's name."""
    opened = st.just((Opened("No heat"),))
    found = drawn(logs(TICKET, histories={"ticket": opened}), 30)
    assert {recorded.event for log in found for recorded in log} == {Opened("No heat")}


def test_a_log_can_be_taken_by_a_store():
    """Row by row, as a log that was exported."""
    log = max(drawn(logs(TICKET), 30), key=len)
    rows = [
        Row(*(getattr(recorded, name) for name in COLUMNS))._replace(meta=None) for recorded in log
    ]
    with Journal() as journal:
        journal.take(rows)
        assert [each.event for each in journal.read()] == [each.event for each in log]
