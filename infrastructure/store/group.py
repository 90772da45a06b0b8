"""Group commit: appends of several threads that wait for the same turn share one commit."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum

from statelog.infrastructure.store.forks import watch
from statelog.infrastructure.store.row import Appended, Batch

MOST = 64
"""Members of one group: those behind it wait for the next, and other processes come between."""


class Fate(Enum):
    """What became of an append that was carried by another thread."""

    WAITING, LEAD, DONE, LOST = range(4)


class Ticket:
    """An append on its way, and its outcome: `result`, or `error`.

    `LOST` means that the thread which carried it was stopped: it may have landed or not.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.result: Appended | None = None
        self.error: BaseException | None = None
        self.fate = Fate.WAITING
        self._told = threading.Lock()
        self._told.acquire()

    def tell(self, fate: Fate) -> None:
        """Let its thread go on. Only once: a second word comes too late."""
        if self.fate is Fate.WAITING:
            self.fate = fate
            self._told.release()

    def wait(self) -> Fate:
        """Wait to be told."""
        self._told.acquire()
        return self.fate


class Group:
    """Who leads carries its own append and those of all who came meanwhile.

    A thread that finds nobody leading leads at once, so a single writer never waits for company.
    `carry(first, others)` appends `first` and what `others` yields, and sets result or error of
    each; it may raise, which is the outcome of those that have none. Nobody is told before it
    returns.
    """

    def __init__(self, carry: Callable[[Ticket, Iterator[Ticket]], None]) -> None:
        self._carry = carry
        self._reset()
        watch(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[Ticket] = deque()
        self._led = False

    def append(self, ticket: Ticket) -> Fate:
        """Have an append carried: `DONE`, or `LOST` with the thread that led."""
        with self._lock:
            lead = not self._led
            self._led = True
            if not lead:
                self._waiting.append(ticket)
        if not lead and ticket.wait() is not Fate.LEAD:
            return ticket.fate
        self._lead(ticket)
        return Fate.DONE

    def _lead(self, ticket: Ticket) -> None:
        taken: list[Ticket] = []
        try:
            self._carry(ticket, self._others(taken))
        except Exception as error:
            for each in (ticket, *taken):
                if each.result is None and each.error is None:
                    each.error = error
        finally:
            for each in taken:
                known = each.result is not None or each.error is not None
                each.tell(Fate.DONE if known else Fate.LOST)
            self._hand_on()

    def _others(self, taken: list[Ticket]) -> Iterator[Ticket]:
        while len(taken) < MOST - 1:
            try:
                taken.append(self._waiting.popleft())
            except IndexError:
                return
            yield taken[-1]

    def _hand_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().tell(Fate.LEAD)
            else:
                self._led = False

    def before_fork(self) -> None:
        """Nothing of it is inherited."""

    def after_fork(self) -> None:
        """No thread that led or waited is in the child."""
        if os.getpid() != self._pid:
            self._reset()
