"""What every journal does, whatever store it has: subclass, say how to make one, run pytest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import StoredEvent

from statelog.domain.aggregate import Aggregate, Loaded, changed
from statelog.domain.errors import Conflict, Invalid, Refused, StoreError, Unreadable
from statelog.domain.event import Event, Recorded
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.leases import TAKEN, Lease
from statelog.infrastructure.store.row import COLUMNS, Row, hash_of
from statelog.infrastructure.testing.clock import NEW_YEAR, FakeClock


class Started(Event, name="contract.counter.started"):
    """Counting began."""


class Added(Event, name="contract.counter.added"):
    """The count rose."""

    by: int


class Stopped(Event, name="contract.counter.stopped"):
    """Counting ended."""


class Status(Enum):
    """Where a counter is."""

    NEW, COUNTING, STOPPED = "new", "counting", "stopped"


@dataclass(frozen=True)
class Counter:
    """A status and a sum."""

    status: Status = Status.NEW
    total: int = 0


def _evolve(counter: Counter, event: Event) -> Counter:
    return changed(counter, total=counter.total + event.by) if isinstance(event, Added) else counter


COUNTER = Aggregate(
    "counter",
    Counter(),
    _evolve,
    Lifecycle(
        Status.NEW,
        [
            (Started, Status.NEW, Status.COUNTING),
            (Added, Status.COUNTING, SAME),
            (Stopped, Status.COUNTING, Status.STOPPED),
        ],
    ),
)
NESTED = Aggregate("part", COUNTER.blank, _evolve, COUNTER.lifecycle, stream="counter/{}/part/{}")


def start(counter: Counter) -> Sequence[Event]:
    """Begin, unless it began already."""
    return [Started()] if counter.status is Status.NEW else []


def add(counter: Counter, *, by: int = 1, times: int = 1) -> Sequence[Event]:
    """Raise the count; a stopped counter refuses."""
    if counter.status is Status.STOPPED:
        raise Refused("a stopped counter counts no more", rule="stopped")
    return [Added(by=by)] * times


def stop(counter: Counter) -> Sequence[Event]:
    """End."""
    return [Stopped()]


class JournalContract:
    """The tests that every journal passes.

    A subclass whose name starts with `Test` says how to make an empty journal.
    """

    def make_journal(self, tmp_path: Path, clock: Callable[[], int]) -> Journal:
        """An empty journal with this clock."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The clock of the journal."""
        return FakeClock()

    @pytest.fixture
    def journal(self, tmp_path: Path, clock: FakeClock) -> Iterator[Journal]:
        """An empty journal."""
        with self.make_journal(tmp_path, clock) as made:
            yield made

    def test_a_new_journal_is_empty(self, journal: Journal) -> None:
        """Nothing happened, and everything is blank at version 0."""
        assert journal.head() == 0
        assert list(journal.read()) == []
        assert list(journal.history("counter")) == []
        assert journal.load(COUNTER, "a") == COUNTER.blank_of("a")
        assert journal.find("nothing") == ()
        assert journal.position_at(NEW_YEAR) == 0
        assert list(journal.latest("counter", "contract.counter.added")) == []

    def test_a_command_appends_its_events(self, journal: Journal) -> None:
        """The result, the next load and the envelope say the same."""
        done = journal.execute(COUNTER, "a", start, actor="bob")
        assert (done.state.status, done.version, done.position) == (Status.COUNTING, 1, 1)
        assert not done.repeated
        assert journal.load(COUNTER, "a") == done.loaded[0]
        (stored,) = journal.read()
        assert done.recorded == (stored,)
        assert (stored.stream, stored.version, stored.position) == ("counter/a", 1, 1)
        assert (stored.name, stored.schema) == ("contract.counter.started", 1)
        assert (stored.actor, stored.event, stored.data) == ("bob", Started(), b"{}")
        assert stored.command

    def test_the_envelope_keeps_what_the_caller_says(self, journal: Journal) -> None:
        """Command, correlation, cause and meta come back as given."""
        journal.execute(
            COUNTER,
            "a",
            start,
            actor="alice",
            command="c-1",
            correlation="k-1",
            cause="job/7@3",
            meta={"why": ["test", 1]},
        )
        (stored,) = journal.find("c-1")
        assert (stored.actor, stored.command) == ("alice", "c-1")
        assert (stored.correlation, stored.cause) == ("k-1", "job/7@3")
        assert stored.meta == {"why": ["test", 1]}

    @pytest.mark.parametrize("bad", ["", "a\0b", "\ud800"], ids=["empty", "nul", "surrogate"])
    @pytest.mark.parametrize("field", ["actor", "command", "correlation", "cause"])
    def test_text_that_cannot_be_stored_is_refused(
        self, journal: Journal, field: str, bad: str
    ) -> None:
        """Nothing is written, and the error names the field."""
        texts: dict[str, Any] = {"actor": "bob", field: bad}
        with pytest.raises(Invalid) as caught:
            journal.execute(COUNTER, "a", start, **texts)
        assert caught.value.field == field
        assert journal.head() == 0

    def test_the_hash_covers_what_is_stored(self, journal: Journal) -> None:
        """Both hashes are those of docs/reference/file-format.md."""
        journal.execute(COUNTER, "ä/b", start, actor="bob", meta={"a": 1})
        journal.execute(COUNTER, "ä/b", add, by=3, actor="bob", correlation="k")
        for stored in journal.read():
            assert stored.data is not None
            assert stored.data_hash == sha256(stored.data).digest()
            row = Row._make(getattr(stored, column) for column in COLUMNS)
            meta = None if stored.meta is None else '{"a":1}'
            assert stored.hash == hash_of(row._replace(meta=meta))

    def test_positions_are_dense(self, journal: Journal) -> None:
        """1, 2, 3 ... over all streams, and versions in each stream."""
        for id in ("a", "b", "a", "c", "b"):
            journal.execute(COUNTER, id, start, actor="bob")
            journal.execute(COUNTER, id, add, times=2, actor="bob")
        events = list(journal.read())
        assert [each.position for each in events] == list(range(1, len(events) + 1))
        for id in ("a", "b", "c"):
            own = [each.version for each in journal.history(f"counter/{id}")]
            assert own == list(range(1, len(own) + 1))

    def test_saying_it_again_writes_nothing(self, journal: Journal) -> None:
        """A decision without events is a success at the version it saw."""
        journal.execute(COUNTER, "a", start, actor="bob")
        done = journal.execute(COUNTER, "a", start, actor="bob")
        assert (done.recorded, done.version, done.position) == ((), 1, 1)
        assert journal.head() == 1

    def test_a_refusal_is_raised_and_kept(self, journal: Journal, clock: FakeClock) -> None:
        """The evidence says who, what, on which version, when and why; the log says nothing."""
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.execute(COUNTER, "a", stop, actor="bob")
        for actor, command in (("bob", None), ("alice", "c-9")):
            with pytest.raises(Refused):
                journal.execute(COUNTER, "a", add, actor=actor, command=command)
        first, last = journal.refusals()
        assert (first.id, first.actor, first.command) == (1, "bob", None)
        assert (last.id, last.actor, last.command) == (2, "alice", "c-9")
        assert (last.stream, last.version, last.rule) == ("counter/a", 2, "stopped")
        assert (last.reason, last.time) == ("a stopped counter counts no more", clock.now)
        assert journal.refusals(1) == [last]
        assert journal.head() == 2
        assert journal.health()["refusals"] == 2

    def test_several_aggregates_in_one_append(self, journal: Journal) -> None:
        """Their events are neighbours and share command and time."""
        first = journal.load(COUNTER, "a").decide(start)
        second = journal.load(COUNTER, "b").decide(start)
        done = journal.commit(first, second, actor="bob")
        assert done.loaded == (first.after, second.after)
        assert [each.stream for each in done.recorded] == ["counter/a", "counter/b"]
        assert len({(each.command, each.time) for each in journal.read()}) == 1

    def test_all_or_none(self, journal: Journal) -> None:
        """A conflict in one stream keeps the events of the others out, and is named."""
        journal.execute(COUNTER, "b", start, actor="bob")
        stale = COUNTER.blank_of("b").decide(start)
        with pytest.raises(Conflict) as caught:
            journal.commit(journal.load(COUNTER, "a").decide(start), stale, actor="bob")
        conflict = caught.value
        assert (conflict.stream, conflict.expected, conflict.actual) == ("counter/b", 0, 1)
        assert journal.head() == 1

    def test_a_version_that_is_not_reached_is_a_conflict_too(self, journal: Journal) -> None:
        """Streams have no gaps, whatever a caller claims to have read."""
        ahead = Loaded(COUNTER, "a", Counter(Status.COUNTING), 7)
        with pytest.raises(Conflict):
            journal.commit(ahead.decide(add), actor="bob")
        assert journal.head() == 0

    def test_a_guard_holds_a_version(self, journal: Journal) -> None:
        """A change without events keeps the others out once its stream moved on."""
        guard = journal.execute(COUNTER, "a", start, actor="bob").loaded[0].guard()
        done = journal.commit(guard, journal.load(COUNTER, "b").decide(start), actor="bob")
        assert [each.stream for each in done.recorded] == ["counter/b"]
        journal.execute(COUNTER, "a", add, actor="bob")
        with pytest.raises(Conflict) as caught:
            journal.commit(guard, journal.load(COUNTER, "c").decide(start), actor="bob")
        assert caught.value.stream == "counter/a"
        with pytest.raises(Conflict):
            journal.commit(guard, actor="bob")
        assert journal.head() == 3

    def test_a_guard_alone_writes_nothing(self, journal: Journal) -> None:
        """It is checked, and that is all."""
        done = journal.commit(journal.load(COUNTER, "a").guard(), actor="bob")
        assert (done.recorded, done.position, journal.head()) == ((), 0, 0)

    def test_changes_of_one_stream_follow_each_other(self, journal: Journal) -> None:
        """The second is decided on the state after the first."""
        first = journal.load(COUNTER, "a").decide(start)
        second = first.after.decide(add, by=5)
        journal.commit(first, second, actor="bob")
        assert journal.load(COUNTER, "a").state.total == 5
        twice = journal.load(COUNTER, "a").decide(add)
        with pytest.raises(Invalid):
            journal.commit(twice, twice, actor="bob")
        assert journal.head() == 2

    def test_a_lost_race_is_decided_again(self, journal: Journal) -> None:
        """On what is there now, and nothing is lost."""
        journal.execute(COUNTER, "a", start, actor="bob")
        rivals = iter([1, 1, 1])

        def contested(counter: Counter) -> Sequence[Event]:
            for _ in rivals:
                journal.execute(COUNTER, "a", add, actor="alice")
                break
            return [Added(by=10 * (counter.total + 1))]

        done = journal.execute(COUNTER, "a", contested, actor="bob")
        assert done.state.total == 3 + 40
        assert [each.version for each in journal.history("counter/a")] == [1, 2, 3, 4, 5]

    def test_a_race_lost_five_times_is_a_conflict(self, journal: Journal) -> None:
        """Tries are bounded; the caller decides what then."""
        journal.execute(COUNTER, "a", start, actor="bob")
        tries = []

        def hopeless(counter: Counter) -> Sequence[Event]:
            tries.append(counter)
            journal.execute(COUNTER, "a", add, actor="alice")
            return [Added(by=1)]

        with pytest.raises(Conflict):
            journal.execute(COUNTER, "a", hopeless, actor="bob")
        assert len(tries) == 5

    def test_an_expected_version_is_not_decided_again(self, journal: Journal) -> None:
        """Neither when it was wrong from the start nor when another writer was first."""
        journal.execute(COUNTER, "a", start, actor="bob")
        assert journal.execute(COUNTER, "a", add, actor="bob", expect=1).version == 2
        with pytest.raises(Conflict) as caught:
            journal.execute(COUNTER, "a", add, actor="bob", expect=1)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        tries = []

        def contested(counter: Counter) -> Sequence[Event]:
            tries.append(counter)
            journal.execute(COUNTER, "a", add, actor="alice")
            return [Added(by=1)]

        with pytest.raises(Conflict):
            journal.execute(COUNTER, "a", contested, actor="bob", expect=2)
        assert len(tries) == 1

    def test_a_command_is_carried_out_once(self, journal: Journal) -> None:
        """Again it gives the first result, also when it would be refused or empty by now."""
        first = journal.execute(COUNTER, "a", start, actor="bob", command="c-1")
        added = journal.execute(COUNTER, "a", add, by=2, actor="bob", command="c-2", expect=1)
        journal.execute(COUNTER, "a", stop, actor="bob", command="c-3")
        for decision, command, before in ((start, "c-1", first), (add, "c-2", added)):
            again = journal.execute(COUNTER, "a", decision, actor="bob", command=command)
            assert again.repeated
            assert (again.recorded, again.loaded) == (before.recorded, before.loaded)
            assert (again.state, again.version) == (before.state, before.version)
            assert again.position == before.position
        assert journal.head() == 3
        assert journal.refusals() == []

    def test_a_commit_with_a_command_is_carried_out_once(self, journal: Journal) -> None:
        """Though its versions are stale by then; guards come back as they were."""
        journal.execute(COUNTER, "g", start, actor="bob")
        changes = (
            journal.load(COUNTER, "a").decide(start),
            journal.load(COUNTER, "b").decide(start),
            journal.load(COUNTER, "g").guard(),
        )
        first = journal.commit(*changes, actor="bob", command="c-1")
        journal.execute(COUNTER, "a", add, actor="bob")
        journal.execute(COUNTER, "g", add, actor="bob")
        again = journal.commit(*changes, actor="bob", command="c-1")
        assert again.repeated
        assert (again.recorded, again.loaded) == (first.recorded, first.loaded)
        assert journal.head() == 5

    def test_a_command_belongs_to_one_thing(self, journal: Journal) -> None:
        """Using it for another stream is a mistake, and nothing is written."""
        journal.execute(COUNTER, "a", start, actor="bob", command="c-1")
        with pytest.raises(Invalid) as caught:
            journal.execute(COUNTER, "b", start, actor="bob", command="c-1")
        assert caught.value.field == "command"
        with pytest.raises(Invalid):
            journal.commit(journal.load(COUNTER, "b").decide(start), actor="bob", command="c-1")
        assert journal.head() == 1

    def test_a_command_given_by_many_at_once_is_carried_out_once(self, journal: Journal) -> None:
        """It is looked up under the write lock."""
        journal.execute(COUNTER, "a", start, actor="bob")
        results = self._at_once(
            6, lambda _: journal.execute(COUNTER, "a", add, actor="bob", command="c-1")
        )
        assert sorted(each.repeated for each in results) == [False] + [True] * 5
        assert {each.version for each in results} == {2}
        assert journal.head() == 2

    def test_threads_share_a_journal(self, journal: Journal) -> None:
        """No event is lost, none doubled, and the order is one."""

        def work(number: int) -> None:
            journal.execute(COUNTER, str(number), start, actor="bob")
            for _ in range(20):
                journal.execute(COUNTER, str(number), add, actor="bob")
                assert (
                    journal.load(COUNTER, str(number)).version
                    == journal.load(COUNTER, str(number)).state.total + 1
                )

        self._at_once(4, work)
        assert [each.position for each in journal.read()] == list(range(1, 85))
        assert [journal.load(COUNTER, str(number)).state.total for number in range(4)] == [20] * 4

    @staticmethod
    def _at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
        results: list[Any] = []
        errors: list[BaseException] = []
        gate = threading.Barrier(count)

        def run(number: int) -> None:
            try:
                gate.wait()
                results.append(work(number))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        return results

    def test_time_never_decreases(self, journal: Journal, clock: FakeClock) -> None:
        """A clock that went back stores the last time again, so a moment is one position."""
        for moment in (NEW_YEAR, NEW_YEAR + 10, NEW_YEAR - 5, NEW_YEAR + 9, NEW_YEAR + 20):
            clock.now = moment
            journal.execute(COUNTER, "a", start, actor="bob")
            if journal.head():
                journal.execute(COUNTER, "a", add, actor="bob")
        stored = [each.time - NEW_YEAR for each in journal.read()]
        assert stored == [0, 0, 10, 10, 10, 20]
        found = [journal.position_at(NEW_YEAR + at) for at in (-1, 0, 9, 10, 19, 20, 21)]
        assert found == [0, 2, 2, 5, 5, 6, 6]

    def test_a_prefix_is_one_thing(self, journal: Journal) -> None:
        """The stream itself and what is nested below it, in log order, and no neighbour."""
        for id in ("4", "42", "4-", "4.x", "40"):
            journal.execute(COUNTER, id, start, actor="bob")
            journal.execute(NESTED, (id, "p/1"), start, actor="bob")
            journal.execute(COUNTER, "4", add, actor="bob")
        found = list(journal.history("counter/4"))
        assert {each.stream for each in found} == {"counter/4", "counter/4/part/p%2F1"}
        assert len(found) == 7
        positions = [each.position for each in found]
        assert positions == sorted(positions)
        assert len(list(journal.history("counter"))) == journal.head()
        assert list(journal.history("counter/4/part")) == [found[1]]
        assert list(journal.history("count")) == []

    @pytest.mark.parametrize("bad", ["", "counter/"])
    def test_a_prefix_is_a_stream_name(self, journal: Journal, bad: str) -> None:
        """Anything else would quietly match nothing."""
        with pytest.raises(Invalid):
            journal.history(bad)

    def test_history_is_bounded(self, journal: Journal) -> None:
        """By positions (after, upto] and by stored names; it ends where the log ended."""
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.execute(COUNTER, "a", add, times=3, actor="bob")
        journal.execute(COUNTER, "b", start, actor="bob")
        journal.execute(COUNTER, "a", stop, actor="bob")

        def positions(events: Iterator[Recorded]) -> list[int]:
            return [each.position for each in events]

        added, stopped = Added.stored_name, Stopped.stored_name
        assert positions(journal.history("counter/a", after=1, upto=3)) == [2, 3]
        assert positions(journal.history("counter/a", names=[added], after=2)) == [3, 4]
        assert positions(journal.history("counter/a", names={stopped, added})) == [2, 3, 4, 6]
        assert positions(journal.history("counter/a", names=[])) == []
        assert positions(journal.read(after=1, upto=5, limit=3)) == [2, 3, 4]
        assert positions(journal.read(names=[stopped, Started.stored_name])) == [1, 5, 6]
        assert positions(journal.read(limit=0)) == []
        assert positions(journal.latest("counter/a", added)) == [4, 3, 2]
        assert positions(journal.latest("counter", Started.stored_name)) == [5, 1]
        for events in (journal.read(), journal.history("counter/a")):
            seen = [next(events).position]
            journal.execute(COUNTER, "c", start, actor="bob")
            assert 7 not in [*seen, *positions(events)]

    def test_long_histories_are_whole(self, journal: Journal) -> None:
        """Pages leave nothing out, repeat nothing and keep the order."""
        for id in ("a", "b"):
            journal.execute(COUNTER, id, start, actor="bob")
        for _ in range(6):
            for id in ("a", "b"):
                journal.execute(COUNTER, id, add, times=150, actor="bob")
        own = [each.position for each in journal.history("counter/a")]
        assert len(own) == 901
        assert own == [each.position for each in journal.read() if each.stream == "counter/a"]
        assert [each.position for each in journal.read()] == list(range(1, 1803))
        newest = [each.position for each in journal.latest("counter/a", Added.stored_name)]
        assert newest == own[:0:-1]
        assert journal.load(COUNTER, "a").state.total == 900

    def test_load_as_of_a_position(self, journal: Journal) -> None:
        """Events after it did not happen yet."""
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.execute(COUNTER, "b", start, actor="bob")
        journal.execute(COUNTER, "a", add, times=3, actor="bob")
        assert journal.load(COUNTER, "a", upto=4) == Loaded(
            COUNTER, "a", Counter(Status.COUNTING, 2), 3
        )
        assert journal.load(COUNTER, "b", upto=1).version == 0

    def test_a_lease_is_of_a_version(self, journal: Journal) -> None:
        """It is renewed by its owner alone, and by nobody once the stream has moved on."""
        journal.execute(COUNTER, "a", start, actor="bob")
        lease = Lease("counter/a", 1, "bob", NEW_YEAR + 10)
        assert journal.leases.all() == []
        assert journal.leases.renew(*lease)
        assert not journal.leases.renew(*lease._replace(owner="alice"))
        assert journal.leases.renew(*lease._replace(expires_at=NEW_YEAR + 20))
        assert journal.leases.all() == [lease._replace(expires_at=NEW_YEAR + 20)]
        assert journal.leases.renew(*lease)
        assert journal.leases.all() == [lease._replace(expires_at=NEW_YEAR + 20)]
        for version in (0, 2):
            assert not journal.leases.renew(*lease._replace(version=version))
        journal.execute(COUNTER, "a", add, actor="bob")
        assert not journal.leases.renew(*lease)
        assert journal.leases.renew(*lease._replace(version=2, owner="alice"))

    def test_a_lease_is_taken_once_it_is_over(self, journal: Journal) -> None:
        """Not before; and then it can be taken again, but never renewed."""
        journal.execute(COUNTER, "a", start, actor="bob")
        lease = Lease("counter/a", 1, "bob", NEW_YEAR + 10)
        assert journal.leases.renew(*lease)
        assert not journal.leases.take("counter/a", 1, NEW_YEAR + 9)
        assert journal.leases.renew(*lease)
        for _ in range(2):
            assert journal.leases.take("counter/a", 1, NEW_YEAR + 10)
        assert not journal.leases.renew(*lease._replace(expires_at=NEW_YEAR + 99))
        assert journal.leases.all() == [Lease("counter/a", 1, TAKEN, NEW_YEAR + 10)]
        assert not journal.leases.take("counter/a", 2, NEW_YEAR + 99)
        assert not journal.leases.take("counter/b", 1, NEW_YEAR + 99)

    def test_leases_that_are_over_are_forgotten(self, journal: Journal) -> None:
        """Expired, and of a version that is past: both, as one of them alone may still matter."""
        for id, end in (("a", 10), ("b", 10), ("c", 30)):
            journal.execute(COUNTER, id, start, actor="bob")
            assert journal.leases.renew(f"counter/{id}", 1, "bob", NEW_YEAR + end)
        for id in ("b", "c"):
            journal.execute(COUNTER, id, add, actor="bob")
        journal.leases.forget(NEW_YEAR + 20)
        assert [lease.stream for lease in journal.leases.all()] == ["counter/a", "counter/c"]

    def test_leases_write_no_event(self, journal: Journal) -> None:
        """And an append after one is as any other."""
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.leases.renew("counter/a", 1, "bob", NEW_YEAR)
        journal.leases.forget(NEW_YEAR)
        assert journal.head() == 1
        assert journal.execute(COUNTER, "a", add, actor="bob").position == 2

    def test_an_unknown_event_passes_untouched(self, journal: Journal) -> None:
        """History shows it; only who must decode it fails, and is told where it is."""
        journal.execute(COUNTER, "a", start, actor="bob")
        strange = StoredEvent("counter/a", 2, "contract.counter.forgotten", b"\xff not JSON")
        journal.recorder.insert_events([strange])
        found = list(journal.history("counter/a"))[1]
        assert (found.name, found.data) == (strange.topic, strange.state)
        for use in (lambda: found.event, lambda: journal.load(COUNTER, "a")):
            with pytest.raises(Unreadable) as caught:
                use()
            assert (caught.value.position, caught.value.name) == (2, strange.topic)
        assert journal.load(COUNTER, "a", upto=1).version == 1

    def test_ids_are_any_text(self, journal: Journal) -> None:
        """Slashes, spaces and other scripts; two ids are never one stream."""
        ids = ["a/b", "a b", "a%2Fb", "ä", "猫", "0", "a/b/"]
        for id in ids:
            journal.execute(COUNTER, id, start, actor="bob")
        assert len({each.stream for each in journal.read()}) == len(ids)
        assert all(journal.load(COUNTER, id).version == 1 for id in ids)

    def test_the_environment_changes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`eventsourcing` lets variables of the process decide; a journal does not."""
        monkeypatch.setenv("PERSISTENCE_MODULE", "eventsourcing.popo")
        monkeypatch.setenv("STATELOG_PERSISTENCE_MODULE", "eventsourcing.popo")
        monkeypatch.setenv("IS_SNAPSHOTTING_ENABLED", "y")
        monkeypatch.setenv("CIPHER_TOPIC", "nowhere:Cipher")
        with self.make_journal(tmp_path, FakeClock()) as journal:
            assert journal.execute(COUNTER, "a", start, actor="bob").position == 1

    def test_it_is_an_eventsourcing_application(self, journal: Journal) -> None:
        """Save, event store, repository and notification log do what they do elsewhere."""
        change = journal.load(COUNTER, "a").decide(start)
        (recording,) = journal.save(change, actor="bob")
        assert (recording.notification.id, recording.notification.topic) == (
            1,
            Started.stored_name,
        )
        (stored,) = journal.events.get("counter/a")
        assert stored == recording.domain_event
        (notification,) = journal.notification_log.select(start=1, limit=10)
        assert (notification.originator_id, notification.state) == ("counter/a", b"{}")

        def total(before: Any, events: Any) -> Any:
            return COUNTER.fold(each.event for each in events)

        state: Any = journal.repository.get("counter/a", projector_func=total)
        assert state == change.state

    def test_a_closed_journal_says_so(self, tmp_path: Path, clock: FakeClock) -> None:
        """Closing twice is nothing; every use after it is an error of its own kind."""
        journal = self.make_journal(tmp_path, clock)
        loaded = journal.execute(COUNTER, "a", start, actor="bob").loaded[0]
        journal.close()
        journal.close()
        uses: list[Callable[[], object]] = [
            journal.head,
            lambda: journal.load(COUNTER, "a"),
            lambda: list(journal.read()),
            lambda: journal.commit(loaded.decide(add), actor="bob"),
            lambda: journal.execute(COUNTER, "a", add, actor="bob"),
            journal.refusals,
        ]
        for use in uses:
            with pytest.raises(StoreError) as caught:
                use()
            assert caught.value.kind == "closed"
