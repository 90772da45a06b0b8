"""A run-once session over several plans: one at a time, in the order they became eligible (9)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import StatelogError
from statelog.domain.event import Recorded
from statelog.domain.execution.endings import Resolution, exit_code
from statelog.domain.execution.plan import Approved
from statelog.domain.execution.spec import PlanSpec
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.execution.run_once import RunOnce
from statelog.projections.execution.streams import plan_of

TIMEOUT_S: Final = 1800.0
"""How long a session waits for its plans to become executable."""

_LOOK_S: Final = 1.0
_WAITS: Final = frozenset({Resolution.NOT_ELIGIBLE, Resolution.DUPLICATE})


@dataclass(frozen=True)
class Wish:
    """A plan to run: its body, and the folders of its step modules (default: the engine's)."""

    body: Mapping[str, Any]
    path: Sequence[Path] | None = None

    @property
    def plan_id(self) -> str:
        """The plan of the body. Raises `Invalid`."""
        return PlanSpec.from_json(self.body).plan_id


@dataclass(frozen=True)
class Finished:
    """What became of a wish; `taken_over` says that the plan went to somebody else meanwhile."""

    resolved: Resolved
    taken_over: bool = False

    def code(self, *, interrupted: bool = False) -> int:
        """What it contributes to the exit code of the session."""
        found = self.resolved
        return exit_code(
            found.resolution,
            found.report,
            interrupted=interrupted,
            taken_over=self.taken_over,
        )


class Session:
    """Carries out wishes as one owner, until each has an end that is told to `ended`.

    `adopt` takes plans over from the daemon or a living run; `draft` saves them as drafts, which
    wait to be approved. `timeout_s` bounds the wait for plans to become executable: those that are
    queued by then still run.
    """

    def __init__(
        self,
        running: RunOnce,
        *,
        adopt: bool = False,
        draft: bool = False,
        timeout_s: float = TIMEOUT_S,
        ended: Callable[[Finished], None] = lambda finished: None,
    ) -> None:
        self._running = running
        self._adopt = adopt
        self._draft = draft
        self._timeout_s = timeout_s
        self._ended = ended
        self._wishes: dict[str, Wish] = {}
        self._queue: deque[str] = deque()
        self._waiting: dict[str, Resolved] = {}
        self._unprepared: dict[str, Resolved] = {}
        self._finished: dict[str, Finished] = {}

    def run(self, wishes: Iterable[Wish]) -> list[Finished]:
        """Run them, each plan named once; what became of each, in the order of the wishes."""
        self._wishes = {wish.plan_id: wish for wish in wishes}
        journal = self._running.plans.journal
        self._until = time.monotonic() + self._timeout_s
        self._until_us = journal.clock() + int(self._timeout_s * 1_000_000)
        with journal.follow(after=journal.head()) as follower:
            for plan_id in self._wishes:
                self._prepare(plan_id)
            while self._left and not self._running.cancel.is_set():
                if self._queue:
                    self._execute(self._queue.popleft())
                    self._noted(follower.ready())
                    continue
                wait_s = self._until - time.monotonic()
                if wait_s <= 0:
                    break
                self._noted(follower.batch(min(wait_s, _LOOK_S)))
                self._look_at_slots()
        self._abandon()
        return [self._finished[plan_id] for plan_id in self._wishes]

    @property
    def _left(self) -> list[str]:
        return [plan_id for plan_id in self._wishes if plan_id not in self._finished]

    def _prepare(self, plan_id: str) -> None:
        """The recovery pass of one plan: settle it, make it ours, queue it if it may run."""
        body = self._wishes[plan_id].body
        if self._adopt and self._running.held_by_others(plan_id):
            reason = "another process has the plan"
            self._unprepared[plan_id] = Resolved(plan_id, Resolution.DUPLICATE, reason)
            return
        self._unprepared.pop(plan_id, None)
        try:
            ended = self._running.prepare(plan_id, body, adopt=self._adopt, draft=self._draft)
        except StatelogError as error:
            ended = Resolved(plan_id, Resolution.ADMISSION_FAILED, str(error))
        if ended is not None:
            self._finish(ended)
        else:
            self._look(plan_id)

    def _look(self, plan_id: str) -> None:
        """Queue a plan that may run now, end one that is no longer ours, else let it wait."""
        try:
            refused = self._running.coordinator.refusal(plan_id)
        except StatelogError:
            refused = None
        if refused is None or (refused.resolution is Resolution.DUPLICATE and self._free(plan_id)):
            self._waiting.pop(plan_id, None)
            self._queue.append(plan_id)
        else:
            self._heard(refused)

    def _free(self, plan_id: str) -> bool:
        return not self._running.held_by_others(plan_id)

    def _heard(self, resolved: Resolved) -> None:
        plan_id = resolved.plan_id
        if resolved.resolution in _WAITS:
            if plan_id not in self._waiting:
                self._running.say(f"plan {plan_id!r} waits: {resolved.reason}")
            self._waiting[plan_id] = resolved
        else:
            taken = resolved.resolution is Resolution.NOT_AUTHORIZED
            self._finish(resolved, taken_over=taken)

    def _execute(self, plan_id: str) -> None:
        coordinator, path = self._running.coordinator, self._wishes[plan_id].path
        if path is not None:
            coordinator.engine = replace(coordinator.engine, path=path)
        self._heard(coordinator.cycle(plan_id))

    def _noted(self, events: Iterable[Recorded]) -> None:
        """Look at the plans that changed in time, those approved first in front."""
        changed: dict[str, None] = {}
        for recorded in events:
            plan_id = plan_of(recorded)
            waits = plan_id in self._waiting or plan_id in self._unprepared
            late = time.monotonic() >= self._until and recorded.time > self._until_us
            if plan_id is None or not waits or late:
                continue
            if recorded.name == Approved.stored_name:
                changed.pop(plan_id, None)
            changed[plan_id] = None
        for plan_id in changed:
            self._again(plan_id)

    def _look_at_slots(self) -> None:
        """A process may end without an event: look at what waits for one."""
        self._running.coordinator.pay()
        for plan_id in self._left:
            waiting = self._waiting.get(plan_id)
            held = waiting is not None and waiting.resolution is Resolution.DUPLICATE
            if held or plan_id in self._unprepared:
                self._again(plan_id)

    def _again(self, plan_id: str) -> None:
        if plan_id in self._unprepared:
            self._prepare(plan_id)
        else:
            self._look(plan_id)

    def _abandon(self) -> None:
        """What did not run, because of Ctrl-C or because it did not become executable in time."""
        for plan_id in self._left:
            why = self._waiting.get(plan_id) or self._unprepared.get(plan_id)
            if why is None or self._running.cancel.is_set():
                why = Resolved(plan_id, Resolution.CANCELLED, "interrupted before it was run")
            else:
                late = f"{why.reason}; gave up waiting after {self._timeout_s:g} s"
                why = replace(why, reason=late)
            self._finish(why)

    def _finish(self, resolved: Resolved, *, taken_over: bool = False) -> None:
        plan_id = resolved.plan_id
        for waiting in (self._waiting, self._unprepared):
            waiting.pop(plan_id, None)
        self._finished[plan_id] = Finished(self._about(resolved), taken_over)
        self._ended(self._finished[plan_id])

    def _about(self, resolved: Resolved) -> Resolved:
        """With the request that it was about, where nothing ran."""
        if resolved.plan_generation is not None:
            return resolved
        try:
            plan = self._running.plans.find(resolved.plan_id).state
        except StatelogError:
            return resolved
        return replace(
            resolved, plan_generation=plan.plan_generation or None, run_token=plan.run_token
        )
