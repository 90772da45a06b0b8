"""The slot of each plan in this process: one cycle at a time, and one shared follow-up (2.5)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.request import Claim
from statelog.infrastructure.execution.coordinator import Resolved

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


@dataclass
class _Active:
    """A plan's slot that is not free."""

    ask: Ask
    waiters: list[Future[Resolved]]
    cancel: Cancel = field(default_factory=Cancel)
    next_ask: Ask | None = None
    queued: list[Future[Resolved]] = field(default_factory=list)


class Dispatch:
    """Runs cycles in threads, different plans at once and each plan once.

    A request for a plan that is being worked on waits for the end of the active cycle and shares
    one follow-up with all that came meanwhile. `most` bounds the cycles at work; further plans
    wait for their turn. `told` hears of every resolution, in the thread of its cycle.
    """

    def __init__(
        self,
        cycle: Cycle,
        *,
        most: int = UNBOUNDED,
        told: Callable[[Resolved], None] | None = None,
    ) -> None:
        self._cycle = cycle
        self._told = told
        self._turns = threading.Semaphore(most)
        self._guard = threading.Condition()
        self._active: dict[str, _Active] = {}
        self._refusing = False

    def request(self, plan_id: str, ask: Ask) -> Future[Resolved]:
        """Wish for a plan to be looked at. The future never raises for what a resolution can say.

        A dispatch that is stopping answers `cancelled`: the plan stays eligible.
        """
        future: Future[Resolved] = Future()
        with self._guard:
            if self._refusing:
                log.warning("plan %r is not looked at: the service is stopping", plan_id)
                future.set_result(Resolved(plan_id, Resolution.CANCELLED, "stopping"))
                return future
            active = self._active.get(plan_id)
            if active is not None:
                active.queued.append(future)
                active.next_ask = ask.after(active.next_ask)
                return future
            active = self._active[plan_id] = _Active(ask, [future])
        threading.Thread(
            target=self._work, args=(plan_id, active), name=f"plan {plan_id}", daemon=True
        ).start()
        return future

    def busy(self, plan_id: str) -> bool:
        """Whether a cycle of this plan is on its way here."""
        with self._guard:
            return plan_id in self._active

    def cancel(self, plan_id: str) -> None:
        """Ask the plan's cycle to end after the running step; until then the plan is excluded."""
        with self._guard:
            active = self._active.get(plan_id)
            if active is not None:
                active.cancel.set()

    def refuse(self) -> None:
        """Refuse new requests and ask every cycle to end."""
        with self._guard:
            self._refusing = True
            for active in self._active.values():
                active.cancel.set()

    def drain(self, timeout_s: float | None = None) -> bool:
        """Wait until no cycle is on its way; whether that came to pass."""
        with self._guard:
            return self._guard.wait_for(lambda: not self._active, timeout_s)

    def _work(self, plan_id: str, active: _Active) -> None:
        attempted: Attempted | None = None
        while True:
            try:
                resolved = self._one(plan_id, active, attempted)
            except BaseException as defect:
                log.exception("plan %r: the coordinator failed", plan_id)
                self._fail(plan_id, active, defect)
                return
            attempted = _attempted(resolved) or attempted
            if not self._next(plan_id, active, resolved):
                return

    def _one(self, plan_id: str, active: _Active, attempted: Attempted | None) -> Resolved:
        with self._turns:
            if active.cancel.is_set():
                resolved = Resolved(plan_id, Resolution.CANCELLED, "cancelled before its turn")
            else:
                resolved = self._cycle(plan_id, active.ask, attempted, active.cancel)
        if self._told is not None:
            self._told(resolved)
        return resolved

    def _next(self, plan_id: str, active: _Active, resolved: Resolved) -> bool:
        """Answer the waiters; whether a follow-up has to run for those that came meanwhile."""
        with self._guard:
            done, active.waiters, active.queued = active.waiters, active.queued, []
            again = bool(active.waiters) and not active.cancel.is_set()
            if again:
                active.ask, active.next_ask = active.next_ask or active.ask, None
            else:
                del self._active[plan_id]
                self._guard.notify_all()
        for future in done:
            _answer(future, resolved)
        if not again:
            for future in active.waiters:
                _answer(future, Resolved(plan_id, Resolution.CANCELLED, "cancelled"))
        return again

    def _fail(self, plan_id: str, active: _Active, defect: BaseException) -> None:
        with self._guard:
            self._active.pop(plan_id, None)
            self._guard.notify_all()
        for future in (*active.waiters, *active.queued):
            if not future.cancelled():
                future.set_exception(defect)


def _answer(future: Future[Resolved], resolved: Resolved) -> None:
    """A waiter may have given up; that never unwinds the coordination."""
    if future.set_running_or_notify_cancel():
        future.set_result(resolved)


def _attempted(resolved: Resolved) -> Attempted | None:
    if resolved.execution_id is None or resolved.plan_generation is None:
        return None
    return resolved.plan_generation, resolved.run_token or 0
