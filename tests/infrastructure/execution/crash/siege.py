"""A store under siege: one `statelog run` after the other is killed, and each time checked."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from typing import Any

from tests.infrastructure.cli.desk import Done
from tests.infrastructure.execution.crash.arena import SHAPE, Arena, Victim, ended
from tests.infrastructure.execution.crash.checks import (
    abandoned_holders,
    check_attempts,
    check_log,
    check_reuse,
    check_steps,
    check_views,
    is_open,
    lost,
    rows_of,
)

PHASES = {
    "start-up": ["up", "before making", "after making"],
    "admission": ["before saved+approved", "before held", "after held", "before started"],
    "steps": ["before step_started", "after step_started", "before step_succeeded"],
    "markers": ["before marker", "after marker", "before unmark", "after step_succeeded"],
    "close": ["before closed+report_filed", "after closed+report_filed"],
    "recording": ["before request_finished+released", "after request_finished+released"],
    "views": ["before views", "before view", "after view"],
}
"""Marks near which a process is killed. Those it never comes to let it live."""

REPEATED = ("steps", "markers", "views")
MOMENT_S = 0.004


class Siege:
    """Kills runs of plans on one store at moments that `seed` chooses."""

    def __init__(
        self, arena: Arena, seed: int, plans: tuple[str, ...] = ("p",), ms: float = 2
    ) -> None:
        self.arena, self.plans, self.ms = arena, plans, ms
        self.chance = random.Random(seed)
        self.acks: dict[int, str] = {}
        self.killed = self.trials = 0
        self.aimed: Counter[str] = Counter()
        self.landed: Counter[str] = Counter()
        self.reused = self.ran = 0
        self.mortal: set[str] = set()

    def go_on(self, kills: int, *, at_once: int = 1) -> None:
        """Until this many processes were killed."""
        while self.killed < kills:
            self.trials += 1
            assert self.trials < 5 * kills + 20, self.landed
            self._trial(at_once)

    def _trial(self, at_once: int) -> None:
        rows = rows_of(self.arena.store)
        markers = {plan: self.arena.markers(plan) for plan in self.plans}
        plans = [self.chance.choice(self.plans) for _ in range(at_once)]
        victims = [self._start(plan, adopt=at_once > 1) for plan in plans]
        with ended(*victims):
            # two that contend are left alone once in a while: whoever lives must not lose its plan
            fewest = 0 if at_once > 1 else 1
            for victim in self.chance.sample(victims, self.chance.randint(fewest, at_once)):
                self._strike(victim)
            dones = [victim.end() for victim in victims]
        for victim, done in zip(victims, dones, strict=True):
            self._judge(victim, done, contended=len(set(plans)) < at_once)
        self._check(len(rows), markers, alone=at_once == 1)
        for plan in self.plans:
            if not is_open(self.arena.store, plan):
                self._change(plan)

    def _start(self, plan: str, *, adopt: bool) -> Victim:
        words = ["--adopt"] if adopt and self.chance.random() < 0.3 else []
        return self.arena.start("run", self.arena.plan(plan, self.ms), "-q", "--json", *words)

    def _strike(self, victim: Victim) -> None:
        """Near a mark of the phase whose turn it is; before any mark once in a while."""
        phase = list(PHASES)[self.aimed.total() % len(PHASES)]
        self.aimed[phase] += 1
        if phase == "start-up" and self.chance.random() < 0.4:
            time.sleep(self.chance.uniform(0, 0.3))
        else:
            times = self.chance.randint(1, 3) if phase in REPEATED else 1
            victim.until(self.chance.choice(PHASES[phase]), times)
            time.sleep(self.chance.uniform(0, MOMENT_S))
        victim.kill()

    def _judge(self, victim: Victim, done: Done, *, contended: bool) -> None:
        assert done.code in (-9, 0, 1), done.err
        assert "Traceback" not in done.err, done.err
        if done.code == -9:
            self.killed += 1
            self.landed[victim.last] += 1
            if victim.holder:
                self.mortal.add(victim.holder)
        else:
            self._judge_survivor(json.loads(done.out), done, contended=contended)
        self.acks |= victim.acks

    def _judge_survivor(self, told: dict[str, Any], done: Done, *, contended: bool) -> None:
        """Who was not killed has a result recorded, unless another living process has the plan."""
        if done.code == 0 and told["resolution"] == "finalized":
            return
        assert contended, done
        assert told["resolution"] in ("not_authorized", "duplicate", "superseded"), done

    def _check(self, before: int, markers: dict[str, dict[str, str]], *, alone: bool) -> None:
        store = self.arena.store
        check_views(store, catch_up=False)
        rows = rows_of(store)
        check_log(rows)
        assert lost(rows, self.acks) == []
        for plan in self.plans:
            check_attempts(store, plan)
            check_steps(store, self.arena.work(plan), self.arena.markers(plan), plan)
            assert abandoned_holders(store, plan) <= self.mortal
            if alone:
                counts = check_reuse(store, before, markers[plan], plan)
                self.reused += counts["step_skipped"]
                self.ran += counts["step_started"]
        if self.chance.random() < 0.5:
            check_views(store, catch_up=True)

    def _change(self, plan: str) -> None:
        """Give the next run of a finished plan something to do: new parameters, or lost markers."""
        some = self.chance.sample(list(SHAPE), self.chance.randint(2, 5))
        if self.chance.random() < 0.7:
            for step_id in some:
                self.arena.rounds[plan][step_id] += 1
        else:
            for step_id in some:
                self.arena.marker(step_id, plan).unlink(missing_ok=True)

    def lift(self) -> None:
        """What was left, one run of each plan brings to a recorded result, exactly once."""
        for plan in self.plans:
            before, markers = len(rows_of(self.arena.store)), self.arena.markers(plan)
            done = self.arena.run("run", self.arena.plan(plan, self.ms), "--json")
            assert done.code == 0, done.err
            told = json.loads(done.out)
            check_attempts(self.arena.store, plan)
            check_reuse(self.arena.store, before, markers, plan)
            shown = json.loads(self.arena.run("plan", "show", plan, "--json").out)
            assert shown["executed_run_token"] == shown["run_token"] == told["run_token"]
            assert shown["last_finalized_execution"]["execution_id"] == told["execution_id"]
            assert self.arena.markers(plan).keys() == SHAPE.keys()
        check_log(rows_of(self.arena.store))
        check_views(self.arena.store, catch_up=True)
        assert self.arena.run("views", "verify").code == 0
