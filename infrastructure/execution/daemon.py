"""The service: settles, runs what is due, and follows the log (D8 to D11, section 9)."""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import StatelogError
from statelog.domain.event import Recorded
from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.plan import GenerationAssigned, RequestFinished
from statelog.domain.execution.request import DAEMON, Claim
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.execution.child import Order
from statelog.infrastructure.execution.coordinator import Coordinator, Resolved
from statelog.infrastructure.execution.dispatch import Ask, Attempted, Cancel, Dispatch
from statelog.infrastructure.execution.engine import Engine
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
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
_LISTEN_S: Final = 0.2
_CHUNK: Final = 65536

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

    def __post_init__(self) -> None:
        self._holders = Holders.of(self.journal.store)
        self._interrupt = threading.Event()
        self._settler = Settler(self.journal, self._holders, self.actor, interrupt=self._interrupt)
        self._dispatch = Dispatch(self._cycle, most=self.most, told=self._told)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then end in the order of section 9."""
        self._holders.sweep()
        with (
            self._holders.take("daemon") as holder,
            Views(self.journal, EXECUTION_VIEWS) as views,
            self.journal.follow(after=self.journal.head()) as follower,
        ):
            engine = Engine(self.journal, self.work_root, self.path, self.actor)
            self._judge = Coordinator(engine, self._settler, holder, CLAIM)
            log.info("started on %s, at most %d plans at once", self.journal.store, self.most)
            showing = threading.Thread(target=self._show, args=(views, stop), daemon=True)
            showing.start()
            self._start_pass(views)
            looked = 0.0
            while not stop.is_set():
                self._noted(follower.batch(LOOK_S))
                if time.monotonic() - looked >= LOOK_S:
                    self._look_for_the_dead()
                    looked = time.monotonic()
            self._stop(showing, views)

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
            self._dispatch.request(plan_id, CHANGED)

    def _look_for_the_dead(self) -> None:
        """Try the holder of every slot that is not free and not our own child's (D9)."""
        for plan_id in tuple(self._held):
            if self._dispatch.busy(plan_id):
                continue
            try:
                slot = self.journal.load(SLOT, plan_id).state
            except StatelogError as error:
                log.error("plan %r: its slot cannot be read: %s", plan_id, error)
                continue
            if slot.status is SlotStatus.FREE:
                self._held.discard(plan_id)
            elif slot.gave_up is None and self._holders.alive(slot.holder):
                continue
            elif not self._settler.waits(slot, plan_id):
                self._dispatch.request(plan_id, AGAIN)

    def _cycle(
        self, plan_id: str, ask: Ask, attempted: Attempted | None, cancel: Cancel
    ) -> Resolved:
        """Settle and judge here; what may run runs in a child of its own, which tells of it."""
        resolved = self._settled_or_refused(plan_id, ask, attempted)
        if resolved is None:
            resolved = self._in_a_child(plan_id, ask, attempted, cancel)
        else:
            self._judge.tell(resolved)
        return resolved

    def _settled_or_refused(
        self, plan_id: str, ask: Ask, attempted: Attempted | None
    ) -> Resolved | None:
        try:
            settled = self._judge.settle(plan_id)
            if settled is not None and settled.resolution is Resolution.FINALIZATION_PENDING:
                return settled
            return self._judge.refusal(plan_id, ask.when, attempted)
        except StatelogError as error:
            return Resolved(plan_id, Resolution.ADMISSION_FAILED, str(error))

    def _in_a_child(
        self, plan_id: str, ask: Ask, attempted: Attempted | None, cancel: Cancel
    ) -> Resolved:
        order = Order(
            store=str(self.journal.store),
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
        answer, code = carried_out(order, cancel)
        if answer is None:
            return self._died(plan_id, code, cancelled=cancel.is_set())
        resolved = Resolved.from_json(answer)
        if resolved.resolution is Resolution.FINALIZATION_PENDING and resolved.execution_id:
            self._settler.spend(resolved.execution_id, resolved.run_token or 0)
        return resolved

    def _died(self, plan_id: str, code: int, *, cancelled: bool) -> Resolved:
        """Look again at once: an abandoned attempt is closed and followed (D9, D11)."""
        reason = f"the attempt's process ended with exit code {code}"
        resolution = Resolution.CANCELLED if cancelled else Resolution.UNFINISHED
        if not cancelled:
            self._dispatch.request(plan_id, AGAIN)
        resolved = Resolved(plan_id, resolution, reason)
        self._judge.tell(resolved)
        return resolved

    def _told(self, resolved: Resolved) -> None:
        if self.on_resolution is not None:
            try:
                self.on_resolution(resolved)
            except Exception:
                log.exception("on_resolution failed")

    def _show(self, views: Views, stop: threading.Event) -> None:
        """Keep the views at most two seconds behind; one that fails is told and tried again."""
        while not stop.wait(VIEWS_S):
            try:
                views.catch_up()
            except StatelogError as error:
                log.error("the views cannot be brought up to date: %s", error)

    def _stop(self, showing: threading.Thread, views: Views) -> None:
        """Refuse and signal first, then drain, then the views (9)."""
        self._dispatch.refuse()
        self._interrupt.set()
        log.info("stopping: running steps finish first")
        self._dispatch.drain()
        showing.join()
        with suppress(StatelogError):
            views.catch_up()
        log.info("stopped")


def carried_out(order: Order, cancel: Cancel) -> tuple[dict[str, Any] | None, int]:
    """Run a child to its end and answer what it wrote, if anything, and its exit code.

    `cancel` is handed on as SIGTERM. The calling thread must outlive the child, because the
    child is killed when the thread that started it ends.
    """
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "statelog.infrastructure.execution.child", str(writing)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=2, pass_fds=(writing,))
    os.close(writing)
    with suppress(BrokenPipeError):
        assert child.stdin is not None
        child.stdin.write(order.line())
        child.stdin.close()
    cancel.then(child.terminate)
    received = _received(reading, child)
    code = child.wait()
    try:
        return json.loads(received), code
    except ValueError:
        return None, code


def _received(reading: int, child: subprocess.Popen[bytes]) -> bytes:
    """What the child wrote until it ended: what it forked may keep the pipe open for longer."""
    received = b""
    with os.fdopen(reading, "rb", buffering=0) as result:
        ended = False
        while not ended:
            ended = child.poll() is not None
            while select.select([result], [], [], 0 if ended else _LISTEN_S)[0]:
                chunk = result.read(_CHUNK)
                if not chunk:
                    return received
                received += chunk
    return received
