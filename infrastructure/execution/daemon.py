"""The service: settles, runs what is due, and follows the log (D8 to D11, section 9)."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from statelog.domain.errors import StatelogError, StoreError
from statelog.domain.event import Recorded
from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.plan import GenerationAssigned, RequestFinished
from statelog.domain.execution.request import DAEMON, Claim
from statelog.domain.execution.slot import SLOT, Slot, SlotStatus
from statelog.infrastructure.execution.child import Order
from statelog.infrastructure.execution.children import carried_out
from statelog.infrastructure.execution.coordinator import Coordinator
from statelog.infrastructure.execution.dispatch import Ask, Attempted, Cancel, Dispatch
from statelog.infrastructure.execution.engine import Engine
from statelog.infrastructure.execution.resolved import Resolved, heard, tell
from statelog.infrastructure.execution.retries import Retries
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.follow import Follower
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.logs import about
from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS
from statelog.projections.execution.document import PLAN_EVENTS
from statelog.projections.execution.streams import plan_of

log = logging.getLogger("statelog.execution.daemon")

CLAIM: Final = Claim(DAEMON)
CHANGED: Final = Ask(CLAIM, frozenset({Due.YES, Due.AT_START}))
"""What a start-up pass and a change of the document let run."""
AGAIN: Final = Ask(CLAIM, frozenset({Due.YES}))
"""What an abandoned attempt lets run."""

LOOK_S: Final = 1.0
VIEWS_S: Final = 2.0

_OURS: Final = frozenset({RequestFinished, GenerationAssigned})
"""Changes of a document that only executing services make, and that make nothing due."""

_PLAN_NAMES: Final = frozenset(e.stored_name for e in PLAN_EVENTS if e not in _OURS)
_SLOT_NAMES: Final = frozenset(event.stored_name for event in SLOT.lifecycle.events)


@dataclass
class Daemon:
    """One service process. Several on one store share its plans.

    `path` are the folders of step modules, `most` the plans at work at once. `on_resolution` is
    called with every resolution, in the thread that reached it.
    """

    journal: Journal
    work_root: Path
    path: Sequence[Path]
    actor: str
    most: int = field(default_factory=lambda: os.cpu_count() or 1)
    on_resolution: Callable[[Resolved], None] | None = None
    log_format: str = "text"
    log_level: str = "INFO"
    _held: set[str] = field(default_factory=set, init=False)
    _retries: Retries = field(default_factory=Retries, init=False)

    def __post_init__(self) -> None:
        self._holders = Holders.for_journal(self.journal)
        self._interrupt = threading.Event()
        self._settler = Settler(self.journal, self._holders, self.actor, interrupt=self._interrupt)
        self._dispatch = Dispatch(self._cycle, most=self.most, told=self._told)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then end in the order of section 9; it may be run again.

        Raises `StoreError` when the store cannot be used any more, ending in the same order.
        """
        self._interrupt.clear()
        self._dispatch.accept()
        self._holders.sweep()
        with (
            self._holders.take("daemon") as holder,
            Views(self.journal, EXECUTION_VIEWS) as views,
            self.journal.follow(after=self.journal.head()) as follower,
        ):
            engine = Engine(self.journal, self.work_root, self.path, self.actor)
            self._judge = Coordinator(engine, self._settler, holder, CLAIM)
            log.info("started on %s, at most %d plans at once", self.journal.named, self.most)
            with self._shown(views), self._stopping(stop, follower):
                self._start_pass(views)
                self._follow(follower, stop)
            log.info("stopped")

    @contextmanager
    def _stopping(self, stop: threading.Event, follower: Follower) -> Iterator[None]:
        """Refuse and signal as soon as `stop` is set, and wait for the running steps at the end."""
        ended = threading.Event()

        def watch() -> None:
            while not (stop.wait(LOOK_S) or ended.is_set()):
                pass
            self._refuse()
            follower.wake()

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield
        finally:
            self._refuse()
            ended.set()
            self._dispatch.drain()
            watching.join()

    def _refuse(self) -> None:
        if not self._interrupt.is_set():
            self._interrupt.set()
            self._dispatch.refuse()
            log.info("stopping: running steps finish first")

    def _follow(self, follower: Follower, stop: threading.Event) -> None:
        """Changes of documents as they come, and once a second what time may have changed."""
        looked = 0.0
        while not stop.is_set():
            try:
                self._noted(follower.batch(LOOK_S))
                if time.monotonic() - looked >= LOOK_S:
                    looked = time.monotonic()
                    self._look_for_the_dead()
                    self._look_again()
            except StoreError as error:
                if not error.retryable:
                    raise
                log.error("the log cannot be read: %s", error)
                stop.wait(LOOK_S)

    def _start_pass(self, views: Views) -> None:
        """Every plan whose slot is taken, and every plan that is due (D11)."""
        for plan_id, row in views.rows("slots"):
            if row["status"] != "free":
                self._held.add(plan_id)
        for plan_id, facts in views.states("due"):
            if facts.asked_by(CLAIM) is not Due.NO:
                self._dispatch.request(plan_id, CHANGED)

    def _noted(self, events: Sequence[Recorded]) -> None:
        """A change of a document asks to look at its plan; its attempts' events wake nothing."""
        changed: dict[str, None] = {}
        for recorded in events:
            plan_id = plan_of(recorded)
            if plan_id is None:
                continue
            if recorded.name in _PLAN_NAMES:
                changed[plan_id] = None
            elif recorded.name in _SLOT_NAMES:
                self._held.add(plan_id)
        for plan_id in changed:
            log.debug("plan %r changed", plan_id, extra=about(plan_id))
            self._dispatch.request(plan_id, CHANGED)

    def _look_for_the_dead(self) -> None:
        """Try the holder of every slot that is not free and not our own child's (D9)."""
        for plan_id in tuple(self._held):
            if self._dispatch.busy(plan_id):
                continue
            try:
                slot = self.journal.load(SLOT, plan_id).state
            except StatelogError as error:
                log.error(
                    "plan %r: its slot cannot be read: %s", plan_id, error, extra=about(plan_id)
                )
                continue
            if slot.status is SlotStatus.FREE:
                self._held.discard(plan_id)
            elif slot.gave_up is None and self._holders.alive(slot.holder):
                continue
            elif not self._settler.waits(slot, plan_id):
                self._dispatch.request(plan_id, AGAIN)

    def _look_again(self) -> None:
        """What failed for reasons that pass: verdicts that are owed, plans that had no chance."""
        self._settler.pay()
        for plan_id, ask in self._retries.due(time.monotonic()):
            self._dispatch.request(plan_id, ask)

    def _cycle(
        self, plan_id: str, ask: Ask, attempted: Attempted | None, cancel: Cancel
    ) -> Resolved:
        """Settle and judge here; what may run runs in a child of its own, which tells of it."""
        try:
            resolved = self._settled_or_refused(plan_id, ask, attempted)
            if resolved is None:
                resolved = self._in_a_child(plan_id, ask, attempted, cancel)
            else:
                tell(resolved)
        except (StatelogError, OSError) as error:
            resolved = Resolved(plan_id, Resolution.ADMISSION_FAILED, str(error))
            tell(resolved)
        if resolved.resolution is Resolution.ADMISSION_FAILED:
            self._retries.add(plan_id, ask, time.monotonic())
        else:
            self._retries.forget(plan_id)
        return resolved

    def _settled_or_refused(
        self, plan_id: str, ask: Ask, attempted: Attempted | None
    ) -> Resolved | None:
        settled = self._judge.settle(plan_id)
        if settled is not None and settled.resolution is Resolution.FINALIZATION_PENDING:
            return settled
        return self._judge.refusal(plan_id, ask.when, attempted)

    def _in_a_child(
        self, plan_id: str, ask: Ask, attempted: Attempted | None, cancel: Cancel
    ) -> Resolved:
        order = Order(
            store=self.journal.url or str(self.journal.store),
            plan_id=plan_id,
            work_root=str(self.work_root),
            path=tuple(map(str, self.path)),
            actor=self.actor,
            authority=ask.claim.authority,
            owner=ask.claim.owner,
            when=tuple(answer.value for answer in ask.when),
            attempted=attempted,
            parent=os.getpid(),
            log_format=self.log_format,
            log_level=self.log_level,
        )
        before = self.journal.load(SLOT, plan_id).state
        answer, code = carried_out(order, cancel)
        if answer is None:
            return self._died(before, plan_id, code, cancelled=cancel.is_set())
        resolved = Resolved.from_json(answer)
        if resolved.resolution is Resolution.FINALIZATION_PENDING and resolved.execution_id:
            self._settler.spend(resolved.execution_id, resolved.run_token or 0)
        return resolved

    def _died(self, before: Slot, plan_id: str, code: int, *, cancelled: bool) -> Resolved:
        """Look again at once at an attempt it abandoned, which is closed and followed (D9, D11).

        Another process may have closed and followed it by now: the floor tells that it was there.
        """
        reason = f"the attempt's process ended with exit code {code}"
        resolution = Resolution.CANCELLED
        if not cancelled:
            resolution = Resolution.UNFINISHED
            slot = self.journal.load(SLOT, plan_id).state
            if slot.status is SlotStatus.FREE and slot.floor == before.floor:
                resolution = Resolution.ADMISSION_FAILED
                reason += " before it had the plan"
            else:
                self._dispatch.request(plan_id, AGAIN)
        resolved = Resolved(plan_id, resolution, reason)
        tell(resolved)
        return resolved

    def _told(self, resolved: Resolved) -> None:
        if self.on_resolution is not None:
            heard(self.on_resolution, resolved)

    @contextmanager
    def _shown(self, views: Views) -> Iterator[None]:
        """Keep the views at most two seconds behind meanwhile, and up to date at the end."""
        ended = threading.Event()
        thread = threading.Thread(target=self._show, args=(views, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._catch_up(views)

    def _show(self, views: Views, ended: threading.Event) -> None:
        while not ended.wait(VIEWS_S):
            self._catch_up(views)

    def _catch_up(self, views: Views) -> None:
        """Views that fail are told and tried again."""
        try:
            views.catch_up()
        except StatelogError as error:
            log.error("the views cannot be brought up to date: %s", error)
