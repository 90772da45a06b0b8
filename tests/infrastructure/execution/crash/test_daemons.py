"""Daemons, their attempts and runs beside them are killed at random moments, and nothing is lost.

In the end no event that was acknowledged is missing, no request was finished twice, no two were at
one plan (its steps prove it), nothing runs or waits for its result, every view equals its rebuild,
every rule about the log holds, and no process is left.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.infrastructure.execution.crash.fleet import fleet_of
from tests.infrastructure.execution.crash.havoc import Havoc
from tests.infrastructure.execution.crash.mixed import STEPS

FEW = 25
MANY = 100 if os.environ.get("STATELOG_SHORT") else 500


def wreak(folder: Path, seed: int, kills: int) -> Havoc:
    """Kill so many, let one healthy daemon end the rest, and look at all of it."""
    folder.mkdir(exist_ok=True)
    with fleet_of(folder, STEPS) as fleet:
        havoc = Havoc(fleet, seed)
        havoc.go_on(kills)
        havoc.settle()
        havoc.check()
        assert havoc.killed.total() == kills
        reasons = {
            report["termination_reason"]
            for plan_id in fleet.plan_ids()
            for report in fleet.reports(plan_id)
        }
        assert reasons == {"completed", "failed_fast", "cancelled", "orchestration_error"}
    return havoc


@pytest.mark.parametrize("seed", [1, 2])
def test_daemons_and_runs_are_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    """Half of fifty kills each."""
    havoc = wreak(tmp_path, seed, FEW)
    assert set(havoc.killed) == {"daemon", "attempt", "run"}


@pytest.mark.long
def test_many_daemons_and_runs_are_killed(tmp_path: Path) -> None:
    """Fifty kills on each of several stores."""
    for seed in range(100, 100 + MANY // 50):
        wreak(tmp_path / str(seed), seed, 50)
