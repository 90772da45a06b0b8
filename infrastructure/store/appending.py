"""Appends: what every store checks and adds in a turn, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol

from eventsourcing.persistence import IntegrityError

from statelog.domain.errors import Conflict, OutcomeUnknown, StoreError
from statelog.infrastructure.store.group import Fate, Group, Ticket
from statelog.infrastructure.store.row import Appended, Batch, Draft, Row, Stamp, stamped
from statelog.infrastructure.store.turn import CommitFailed, OutOfDate, Turn


class Log(Protocol):
    """What appends need of a log."""

    clock: Callable[[], int]

    def turn(self, *, trusting: bool = False, durable: bool = True) -> Turn:
        """A turn to write."""

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command in log order."""

    def wake(self) -> None:
        """Tell who listens that there are new rows."""


class Appending:
    """Appends to one log, those of several threads in one commit."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.group = Group(self._carry)

    def append(self, batch: Batch) -> Appended:
        """What `LogRecorder.append` answers and raises."""
        ticket = Ticket(batch)
        if self.group.append(ticket) is Fate.LOST:
            return self._find_or_append(batch)
        if ticket.error is not None:
            raise ticket.error
        assert ticket.result is not None
        return ticket.result

    def _find_or_append(self, batch: Batch) -> Appended:
        """The outcome of an append whose carrier was stopped, which may be there."""
        if rows := self._log.by_command(batch.stamp.command):
            return Appended(rows, rows[-1].position)
        return self.append(batch)

    def _carry(self, first: Ticket, others: Iterator[Ticket]) -> None:
        """One commit for all. Whoever conflicts fails alone."""
        carried = [first]
        try:
            try:
                tickets = chain([first], _kept(others, carried))
                self._commit(tickets, trusting=bool(first.batch.drafts))
            except OutOfDate:
                self._commit(carried, trusting=False)
        except CommitFailed as failed:
            for each in carried:
                each.result = None
                self._settle(each, failed)
        except IntegrityError:
            if len(carried) == 1:
                raise
            for each in carried:
                each.error = None
                self._alone(each)
        except BaseException:
            for each in carried:
                each.result = None
            raise
        if any(each.result is not None and each.result.rows for each in carried):
            self._log.wake()

    def _commit(self, tickets: Iterable[Ticket], *, trusting: bool) -> None:
        with self._log.turn(trusting=trusting) as turn:
            for each in tickets:
                each.error = None
                if trusting and not each.batch.drafts:
                    raise OutOfDate
                try:
                    each.result = self._added(turn, each.batch)
                except Conflict as conflict:
                    each.error = conflict

    def _alone(self, ticket: Ticket) -> None:
        try:
            self._commit([ticket], trusting=False)
        except CommitFailed as failed:
            self._settle(ticket, failed)
        except (IntegrityError, StoreError) as error:
            ticket.error, ticket.result = error, None

    def _added(self, turn: Turn, batch: Batch) -> Appended:
        if batch.lookup and (found := turn.by_command(batch.stamp.command)):
            return Appended(found, found[-1].position, repeated=True)
        for stream, expected in batch.expect.items():
            actual = turn.version(stream, expected)
            if actual != expected:
                raise Conflict(stream, expected, actual)
        return Appended(*self.insert(turn, batch.drafts, batch.stamp))

    def rewrite(
        self, batch: Batch, erase: Sequence[int], put_back: Mapping[int, bytes]
    ) -> Appended:
        """What `LogRecorder.rewrite` answers and raises."""
        try:
            with self._log.turn() as turn:
                done = self._added(turn, batch)
                if not done.repeated:
                    if erase:
                        turn.erase(erase)
                    if put_back:
                        turn.put_back(put_back)
        except CommitFailed as failed:
            rows = self.landed(batch.stamp.command, failed)
            done = Appended(rows, rows[-1].position)
        self._log.wake()
        return done

    def _settle(self, ticket: Ticket, failed: CommitFailed) -> None:
        """What became of an append whose COMMIT raised."""
        if ticket.error is not None:
            return
        try:
            rows = self.landed(ticket.batch.stamp.command, failed)
            ticket.result = Appended(rows, rows[-1].position)
        except (OutcomeUnknown, StoreError) as error:
            ticket.error = error

    def insert(
        self, turn: Turn, drafts: Sequence[Draft], stamp: Stamp
    ) -> tuple[Sequence[Row], int]:
        """Rows of an append, added behind the last, and the position the log is at then."""
        position, last = turn.head()
        if not drafts:
            return (), position
        rows = stamped(drafts, stamp, position, max(self._log.clock(), last))
        turn.insert(rows)
        return rows, rows[-1].position

    def landed(self, command: str, failed: CommitFailed) -> Sequence[Row]:
        """Rows of a commit that failed, when they are there; else why they are not."""
        try:
            found = self._log.by_command(command)
        except StoreError:
            raise OutcomeUnknown(command) from failed.__cause__
        if not found:
            assert failed.__cause__ is not None
            raise failed.__cause__
        return found


def _kept(tickets: Iterator[Ticket], seen: list[Ticket]) -> Iterator[Ticket]:
    for ticket in tickets:
        seen.append(ticket)
        yield ticket
