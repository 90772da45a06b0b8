"""A fleet of daemons and runs, its operators, and whoever kills one of them after the other."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import Conflict, NotFound, Refused
from statelog.domain.execution.due import Due
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.request import DAEMON, Claim
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.projections.execution import due
from statelog.projections.projection import fold
from tests.infrastructure.execution.crash.arena import until
from tests.infrastructure.execution.crash.checks import check_steps, takeovers
from tests.infrastructure.execution.crash.fleet import Fleet, Unit, parent_of
from tests.infrastructure.execution.crash.mixed import KINDS, body_of, kind_of
from tests.infrastructure.execution.crash.siege import MOMENT_S, PHASES

RUN_CODES: Final = (0, 1, 130, -9)
PAUSE_S: Final = 0.8
STEP_MS: Final = (2, 20, 300)
AIM_S: Final = 1.5


class Havoc:
    """Kills processes of a fleet at moments that `seed` chooses, while plans are changed."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet = fleet
        self.chance = random.Random(seed)
        self.daemons: list[Unit] = []
        self.run: Unit | None = None
        self.acks: dict[int, str] = {}
        self.rounds: Counter[str] = Counter()
        self.killed: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.aimed: Counter[str] = Counter()
        self.taken = 0

    def go_on(self, kills: int) -> None:
        """Until this many processes were killed."""
        for plan_id in KINDS:
            self._noted(self._save, plan_id)
        for _ in range(10 * kills):
            if self.killed.total() >= kills:
                return
            self._keep()
            for _ in range(self.chance.randint(1, 3)):
                self._operate()
            self._strike()
            if self.chance.random() < 0.1:
                self.fleet.check(self.acks)
        raise AssertionError(f"too few were killed: {self.killed}")

    def settle(self) -> None:
        """Let one healthy daemon end all that was left, and stop it."""
        for unit in filter(None, (*self.daemons, self.run)):
            if unit.alive:
                unit.end(signal.SIGKILL)
        healthy = self.fleet.daemon("--max-plans", 2)
        until(lambda: healthy.said("started on"))
        until(lambda: all(map(self._settled, self.fleet.plan_ids())))
        assert healthy.end(signal.SIGTERM) == 0, healthy.err

    def check(self) -> None:
        """What must hold when all have ended."""
        self.fleet.check_ended(self.acks)
        for unit in self.fleet.units:
            assert "Traceback" not in unit.err, unit.err
        for plan_id in self.fleet.plan_ids():
            work = self.fleet.work / plan_id
            check_steps(self.fleet.store, work, _markers(work), plan_id)
            _check_order(work / "story.log")
            self._check_takeovers(plan_id)
            alone = KINDS[kind_of(plan_id)][1]
            reasons = {report["termination_reason"] for report in self.fleet.reports(plan_id)}
            assert reasons <= {alone, "cancelled", "orchestration_error"}, plan_id

    def _check_takeovers(self, plan_id: str) -> None:
        """Nobody whose plan was taken over did anything more."""
        acked = {
            int(told.word.split()[1]): at
            for at, told in enumerate(self.fleet.told())
            if told.word.startswith("ack ")
        }
        for position, holder in takeovers(self.fleet.store, plan_id).items():
            if position in acked:
                assert max(self.fleet.lives_of(holder), default=0) < acked[position]
                self.taken += 1

    def _keep(self) -> None:
        """There are two daemons, and mostly a run."""
        for unit in [unit for unit in self.daemons if not unit.alive]:
            assert unit.process.returncode in (0, -9), unit.err
            self.daemons.remove(unit)
        while len(self.daemons) < 2:
            self.daemons.append(self.fleet.daemon("--max-plans", 2))
        if self.run is not None and not self.run.alive:
            assert self.run.process.returncode in RUN_CODES, self.run.err
            self.run = None
        if self.run is None and self.chance.random() < 0.5:
            self._start_run()

    def _start_run(self) -> None:
        """Of a plan of its own, or one that it takes from the daemons."""
        plan_id = self.chance.choice(["well-run", "contained-run", "fast-run", "well"])
        self.rounds[plan_id] += self.chance.randint(0, 1)
        file = self.fleet.folder / f"{plan_id}.json"
        file.write_text(
            json.dumps(body_of(plan_id, self.chance.choice(STEP_MS), self.rounds[plan_id]))
        )
        adopt = ["--adopt"] if plan_id == "well" or self.chance.random() < 0.3 else []
        self.run = self.fleet.start("run", file, "-q", "--json", *adopt)

    def _operate(self) -> None:
        """One command of an operator; what it is told is safe, is."""
        plans, chosen = self.fleet.plans, self.chance.random()
        known = [*KINDS, *(id for id in self.fleet.plan_ids() if id not in KINDS)]
        plan_id = self.chance.choice(known)
        commands: list[tuple[float, Callable[[str], Any]]] = [
            (0.35, plans.request),
            (0.5, plans.touch),
            (0.6, plans.approve),
            (0.65, plans.draft),
            (0.7, plans.delete),
            (0.8, plans.adopt),
            (1, self._save),
        ]
        command = next(command for limit, command in commands if chosen < limit)
        self._noted(command, plan_id)

    def _noted(self, command: Callable[[str], Any], plan_id: str) -> None:
        """A command that is refused, or meets a document that moved on, is as good."""
        with suppress(Conflict, NotFound, Refused):
            for row in command(plan_id).rows:
                self.acks[row.position] = row.hash.hex()
            self.done[command.__name__] += 1

    def _save(self, plan_id: str) -> Any:
        self.rounds[plan_id] += 1
        return self.fleet.plans.save(self._body(plan_id), approve=True, force=True)

    def _body(self, plan_id: str) -> dict[str, Any]:
        return body_of(plan_id, self.chance.choice(STEP_MS), self.rounds[plan_id])

    def _strike(self) -> None:
        """Kill somebody near a mark, or at any time; sometimes stop a daemon as one should."""
        chosen = self.chance.random()
        if chosen < 0.08:
            self._ask_to_stop(self.chance.choice(self.daemons))
        elif chosen < 0.16:
            self._pause(self._near(self._phase()))
        elif chosen < 0.75:
            self._kill(self._near(self._phase()))
        else:
            time.sleep(self.chance.uniform(0, PAUSE_S))
            self._kill(self._anybody())

    def _phase(self) -> str:
        """That of which the fewest were killed."""
        phases = [phase for phase in PHASES if phase != "start-up"]
        return min(self.chance.sample(phases, len(phases)), key=self.aimed.__getitem__)

    def _kill(self, pid: int | None) -> None:
        who = None if pid is None else self._who(pid)
        if pid is not None and who is not None and self.fleet.kill(pid):
            self.killed[who] += 1

    def _pause(self, pid: int | None) -> None:
        """A process that is stopped for a while loses nothing."""
        if pid is not None and self.fleet.kill(pid, signal.SIGSTOP):
            time.sleep(PAUSE_S)
            self.fleet.kill(pid, signal.SIGCONT)

    def _ask_to_stop(self, daemon: Unit) -> None:
        """Once: the second time would kill it, and so does the first before it is up."""
        if daemon.said("started on") and not daemon.said("stopping"):
            daemon.signal(signal.SIGTERM)
            until(lambda: not daemon.alive or daemon.said("stopping"))

    def _near(self, phase: str) -> int | None:
        """Who passes a mark of the phase next, or the daemon that it works for."""
        since, words = len(self.fleet.told()), PHASES[phase]
        deadline = time.monotonic() + AIM_S
        while time.monotonic() < deadline:
            for told in self.fleet.told()[since:]:
                if told.word in words and (who := self._who(told.pid)):
                    self.aimed[phase] += 1
                    time.sleep(self.chance.uniform(0, MOMENT_S))
                    above = who == "attempt" and self.chance.random() < 0.4
                    return parent_of(told.pid) if above else told.pid
            time.sleep(0.002)
        return self._anybody()

    def _anybody(self) -> int | None:
        alive = [unit.pid for unit in (*self.daemons, self.run) if unit and unit.alive]
        attempts = [pid for daemon in self.daemons for pid in self.fleet.attempts(daemon)]
        some = self.chance.choice([alive, attempts or alive])
        return self.chance.choice(some) if some else None

    def _who(self, pid: int) -> str | None:
        """Whether it is a daemon, a run, or an attempt of a daemon; None for what has ended."""
        daemons = [daemon.pid for daemon in self.daemons if daemon.alive]
        if pid in daemons:
            return "daemon"
        if self.run is not None and self.run.alive and pid == self.run.pid:
            return "run"
        return "attempt" if parent_of(pid) in daemons else None

    def _settled(self, plan_id: str) -> bool:
        journal, prefix = self.fleet.journal, PLAN.stream_of(plan_id)
        if journal.load(SLOT, plan_id).state.status is not SlotStatus.FREE:
            return False
        facts = fold(due, journal.history(prefix, names=due.names))
        return plan_id not in facts or facts[plan_id].asked_by(Claim(DAEMON)) is not Due.YES


def _markers(work: Path) -> dict[str, str]:
    """Every success marker of a plan by step."""
    return {path.parent.name: path.read_text().strip() for path in work.glob("*/success.*")}


def _check_order(story: Path) -> None:
    """Once a later attempt did anything, an earlier one does nothing more."""
    lines = story.read_text().splitlines() if story.exists() else []
    ids = [line.split()[0] for line in lines]
    assert ids == sorted(ids)
