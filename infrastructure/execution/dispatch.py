"""The slot of each plan in this process: one cycle at a time, and one shared follow-up (2.5)."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.request import Claim
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.logs import about

log = logging.getLogger("statelog.execution.dispatch")

Attempted = tuple[str, int]
"""Generation and run token of an attempt."""

UNBOUNDED: Final = 1_000_000


@dataclass(frozen=True)
class Ask:
    """On whose behalf a plan is looked at, and the answers of D11 that let it run."""

    claim: Claim
    when: frozenset[Due]

    def after(self, earlier: Ask | None) -> Ask:
        """This ask where an earlier one waits too: the newest claim, and every reason to run."""
        return self if earlier is None else Ask(self.claim, self.when | earlier.when)


class Cancel(threading.Event):
    """A cancel signal that also calls, at once, whoever must hand it on."""

    def __init__(self) -> None:
        super().__init__()
        self._then: Callable[[], None] | None = None

    def then(self, call: Callable[[], None]) -> None:
        """Call this when the signal is set, or now if it is."""
        self._then = call
        if self.is_set():
            call()

    def set(self) -> None:
        """Give the signal."""
        super().set()
        if self._then is not None:
            self._then()


Cycle = Callable[[str, Ask, Attempted | None, Cancel], Resolved]
"""Takes a plan as far as it goes now: (plan id, ask, what the slot's last cycle attempted, cancel).
"""


@dataclass(eq=False)
class _Active:
    """A plan's slot that is not free: in the line for its next cycle, or at work on it."""

    plan_id: str
    ask: Ask
    waiters: list[Future[Resolved]]
    cancel: Cancel = field(default_factory=Cancel)
    attempted: Attempted | None = None
    at_work: bool = False
    next_ask: Ask | None = None
    queued: list[Future[Resolved]] = field(default_factory=list)

    def join(self, ask: Ask, waiter: Future[Resolved]) -> None:
        """Wait for the next cycle that begins with a fresh read."""
        if self.at_work:
            self.queued.append(waiter)
            self.next_ask = ask.after(self.next_ask)
        else:
            self.waiters.append(waiter)
            self.ask = ask.after(self.ask)

    def follow_up(self) -> bool:
        """Turn to those that came meanwhile; whether anybody still waits and may be served."""
        waiting = [each for each in self.queued if not each.cancelled()]
        self.waiters, self.queued, self.at_work = waiting, [], False
        self.ask, self.next_ask = self.next_ask or self.ask, None
        return bool(waiting) and not self.cancel.is_set()


class Dispatch:
    """Runs cycles in threads, different plans at once and each plan once.

    A request for a plan that is being worked on waits for the end of the active cycle and shares
    one follow-up with all that came meanwhile. `most` bounds the cycles at work, and so the
    threads; further plans wait in line. `told` hears of every resolution, one call a cycle.
    """

    def __init__(
        self,
        cycle: Cycle,
        *,
        most: int = UNBOUNDED,
        told: Callable[[Resolved], None] | None = None,
    ) -> None:
        self._cycle = cycle
        self._told = told or (lambda resolved: None)
        self._most = most
        self._guard = threading.Condition()
        self._active: dict[str, _Active] = {}
        self._line: deque[_Active] = deque()
        self._threads = 0
        self._refusing = False

    def request(self, plan_id: str, ask: Ask) -> Future[Resolved]:
        """Wish for a plan to be looked at. The future never raises for what a resolution can say.

        Cancelling the future gives the wish up; when nobody waits for the active cycle any more it
        is asked to end. A dispatch that is stopping answers `cancelled`: the plan stays eligible.
        """
        future: Future[Resolved] = Future()
        with self._guard:
            if self._refusing:
                log.warning(
                    "plan %r is not looked at: the service is stopping",
                    plan_id,
                    extra=about(plan_id),
                )
                future.set_result(Resolved(plan_id, Resolution.CANCELLED, "stopping"))
                return future
            active = self._active.get(plan_id)
            if active is not None:
                active.join(ask, future)
            else:
                active = self._active[plan_id] = _Active(plan_id, ask, [future])
                self._line_up(active)
        future.add_done_callback(lambda done: self._unwanted(plan_id, done))
        return future

    def busy(self, plan_id: str) -> bool:
        """Whether a cycle of this plan is on its way here."""
        with self._guard:
            return plan_id in self._active

    def cancel(self, plan_id: str) -> None:
        """Ask the plan's cycle to end after the running step; until then the plan is excluded.

        One that waits for its turn is cancelled at once.
        """
        with self._guard:
            stopped = self._cancelled([plan_id])
        self._answer_stopped(stopped)

    def refuse(self) -> None:
        """Refuse new requests and ask every cycle to end."""
        with self._guard:
            self._refusing = True
            stopped = self._cancelled(list(self._active))
        self._answer_stopped(stopped)

    def accept(self) -> None:
        """Take requests again."""
        with self._guard:
            self._refusing = False

    def drain(self, timeout_s: float | None = None) -> bool:
        """Wait until no cycle is on its way; whether that came to pass."""
        with self._guard:
            return self._guard.wait_for(lambda: not self._active, timeout_s)

    def _line_up(self, active: _Active) -> None:
        self._line.append(active)
        if self._threads < self._most:
            self._threads += 1
            name = f"plans {self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while (active := self._next_in_line()) is not None:
            self._carry_out(active)

    def _next_in_line(self) -> _Active | None:
        with self._guard:
            if not self._line:
                self._threads -= 1
                return None
            active = self._line.popleft()
            active.at_work = True
            return active

    def _carry_out(self, active: _Active) -> None:
        try:
            resolved = self._cycle(active.plan_id, active.ask, active.attempted, active.cancel)
            self._told(resolved)
        except BaseException as defect:
            log.exception(
                "plan %r: the coordinator failed", active.plan_id, extra=about(active.plan_id)
            )
            self._fail(active, defect)
            return
        active.attempted = _attempted(resolved) or active.attempted
        self._end(active, resolved)

    def _end(self, active: _Active, resolved: Resolved) -> None:
        """Answer the waiters; those that came meanwhile get a follow-up, at the end of the line."""
        with self._guard:
            done, left = active.waiters, []
            if active.follow_up():
                self._line.append(active)
            else:
                left = active.waiters
                self._free(active)
        for future in done:
            _answer(future, resolved)
        for future in left:
            _answer(future, Resolved(active.plan_id, Resolution.CANCELLED, "cancelled"))

    def _fail(self, active: _Active, defect: BaseException) -> None:
        with self._guard:
            self._free(active)
        for future in (*active.waiters, *active.queued):
            if future.set_running_or_notify_cancel():
                future.set_exception(defect)

    def _free(self, active: _Active) -> None:
        del self._active[active.plan_id]
        self._guard.notify_all()

    def _cancelled(self, plan_ids: list[str]) -> list[_Active]:
        """Give the signal, and free those whose cycle has not begun; answers the latter."""
        stopped = []
        for active in filter(None, map(self._active.get, plan_ids)):
            active.cancel.set()
            if not active.at_work:
                self._line.remove(active)
                self._free(active)
                stopped.append(active)
        return stopped

    def _answer_stopped(self, stopped: list[_Active]) -> None:
        for active in stopped:
            reason = "cancelled before its turn"
            resolved = Resolved(active.plan_id, Resolution.CANCELLED, reason)
            self._told(resolved)
            for future in active.waiters:
                _answer(future, resolved)

    def _unwanted(self, plan_id: str, done: Future[Resolved]) -> None:
        """Cancel a cycle that nobody waits for any more (4.5)."""
        if not done.cancelled():
            return
        with self._guard:
            active = self._active.get(plan_id)
            mine = active is not None and done in active.waiters
            wanted = active is None or not all(each.cancelled() for each in active.waiters)
        if mine and not wanted:
            self.cancel(plan_id)


def _answer(future: Future[Resolved], resolved: Resolved) -> None:
    """A waiter may have given up; that never unwinds the coordination."""
    if future.set_running_or_notify_cancel():
        future.set_result(resolved)


def _attempted(resolved: Resolved) -> Attempted | None:
    if resolved.execution_id is None or resolved.plan_generation is None:
        return None
    return resolved.plan_generation, resolved.run_token or 0
