"""Hypothesis strategies for what happens: histories, orders of several, and whole logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import reject
from hypothesis import strategies as st

from statelog.domain.aggregate import Aggregate
from statelog.domain.errors import IllegalTransition, Invalid, Refused
from statelog.domain.event import Event, Recorded
from statelog.infrastructure import codec
from statelog.infrastructure.store.row import Draft, Stamp, recorded, stamped
from statelog.infrastructure.testing import strategies
from statelog.infrastructure.testing.clock import NEW_YEAR

T = TypeVar("T")
Given = Mapping[type[Event], st.SearchStrategy[Any]]
Decisions = Mapping[Callable[..., Any], Mapping[str, st.SearchStrategy[Any]]]
History = tuple[Event, ...]


@st.composite
def legal_histories(
    draw: st.DrawFn,
    aggregate: Aggregate[Any],
    *,
    events: Given | None = None,
    decisions: Decisions | None = None,
    max_size: int = 12,
) -> History:
    """Events of one instance in an order that its lifecycle allows, from its first event on.

    Payloads are drawn from the declared types, or from the strategies in `events`. A fold that
    needs more than the table allows (an item that is there before it is removed) needs
    `decisions`, as `walk` takes them: then the history is what they decide.
    """
    if decisions is not None:
        return _decided(draw, aggregate, decisions, max_size)
    happened: list[Event] = []
    state = aggregate.blank
    for _ in range(draw(st.integers(0, max_size))):
        allowed = _kinds(aggregate, state, allowed=True)
        if not allowed:
            break
        event = draw(_payload(draw(st.sampled_from(allowed)), events))
        state = aggregate.apply(state, event)
        happened.append(event)
    return tuple(happened)


@st.composite
def illegal_histories(
    draw: st.DrawFn,
    aggregate: Aggregate[Any],
    *,
    events: Given | None = None,
    decisions: Decisions | None = None,
    max_size: int = 12,
) -> History:
    """A legal history, and one event after it that its lifecycle refuses."""
    legal = draw(legal_histories(aggregate, events=events, decisions=decisions, max_size=max_size))
    refused = _kinds(aggregate, aggregate.fold(legal), allowed=False)
    if not refused:
        reject()
    return (*legal, draw(_payload(draw(st.sampled_from(refused)), events)))


@st.composite
def interleavings(draw: st.DrawFn, sequences: Sequence[Sequence[T]]) -> tuple[tuple[int, T], ...]:
    """Several sequences as one, each in its own order: pairs of a sequence's number and an item.

    What several writers do, in an order in which the log may see it. It shrinks to one after the
    other.
    """
    left = [list(sequence) for sequence in sequences]
    merged: list[tuple[int, T]] = []
    while waiting := [number for number, items in enumerate(left) if items]:
        number = draw(st.sampled_from(waiting))
        merged.append((number, left[number].pop(0)))
    return tuple(merged)


@st.composite
def logs(
    draw: st.DrawFn,
    *aggregates: Aggregate[Any],
    histories: Mapping[str, st.SearchStrategy[History]] | None = None,
    max_streams: int = 4,
) -> tuple[Recorded, ...]:
    """Whole logs as a store holds them: streams of these aggregates, shuffled into each other.

    Histories are legal ones of the table, or come from the strategy that `histories` has for the
    aggregate's name. Positions and versions are dense, times never decrease, and data and hashes
    are those of the file.
    """
    streams: dict[str, History] = {}
    for _ in range(draw(st.integers(0, max_streams))):
        aggregate = draw(st.sampled_from(aggregates))
        pattern = aggregate.stream or f"{aggregate.name}/{{}}"
        stream = aggregate.stream_of(draw(strategies.ids(pattern.count("{}"))))
        streams[stream] = draw(_chosen(aggregate, histories or {}))
    merged = draw(interleavings(list(streams.values())))
    return tuple(_log([(list(streams)[number], event) for number, event in merged], draw))


def _chosen(
    aggregate: Aggregate[Any], histories: Mapping[str, st.SearchStrategy[History]]
) -> st.SearchStrategy[History]:
    known = aggregate.name in histories
    return histories[aggregate.name] if known else legal_histories(aggregate)


def _log(appended: Sequence[tuple[str, Event]], draw: st.DrawFn) -> list[Recorded]:
    versions: dict[str, int] = {}
    found: list[Recorded] = []
    time = NEW_YEAR
    for stream, event in appended:
        versions[stream] = version = versions.get(stream, 0) + 1
        draft = Draft(stream, version, event.stored_name, event.schema, codec.encode(event))
        time += draw(st.sampled_from((0, 1, 1_000_000, 3_600_000_000)))
        stamp = Stamp(draw(st.sampled_from(("alice", "bob"))), f"c-{len(found) + 1}")
        (row,) = stamped([draft], stamp, len(found), time)
        found.append(recorded(row, codec.decoder))
    return found


def _decided(
    draw: st.DrawFn, aggregate: Aggregate[Any], decisions: Decisions, max_size: int
) -> History:
    happened: list[Event] = []
    state = aggregate.blank
    for _ in range(draw(st.integers(0, max_size))):
        decision = draw(st.sampled_from(list(decisions)))
        given = {name: draw(strategy) for name, strategy in decisions[decision].items()}
        try:
            events, state = aggregate.decide(state, decision, **given)
        except (Refused, Invalid, IllegalTransition):
            continue
        happened += events
    return tuple(happened)


def _kinds(aggregate: Aggregate[Any], state: Any, *, allowed: bool) -> list[type[Event]]:
    """The events of the table that replay takes in this state, or those that it refuses."""
    lifecycle = aggregate.lifecycle
    now = {row.event for row in lifecycle.rows if row.source is state.status}
    return [event for event in lifecycle.events if (event in now) is allowed]


def _payload(event: type[Event], given: Given | None) -> st.SearchStrategy[Event]:
    return given[event] if given and event in given else strategies.events(event)
