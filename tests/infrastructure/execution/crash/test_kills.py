"""50 `kill -9` of real `statelog run` processes: nothing that was acknowledged is ever lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infrastructure.execution.crash.arena import Arena
from tests.infrastructure.execution.crash.checks import check_log, lost, rows_of
from tests.infrastructure.execution.crash.siege import PHASES, Siege

STORES, KILLS = 5, 10


@pytest.mark.parametrize("store", range(STORES))
def test_runs_are_killed_at_random_moments(tmp_path: Path, store: int) -> None:
    """Ten on each of five stores: at start-up, admission, in steps, at markers, closing,
    recording and catching up views. After each the log is whole, every view equals its rebuild,
    and the next command works; in the end one `statelog run` records the result."""
    siege = Siege(Arena(tmp_path), seed=store)
    siege.go_on(kills=KILLS)
    siege.lift()
    assert siege.killed == KILLS
    assert set(siege.aimed) == set(PHASES)
    assert len(siege.landed) > 3
    assert min(siege.ran, siege.reused) > 0


@pytest.mark.parametrize("early", [False, True], ids=["after the commit", "before the commit"])
@pytest.mark.parametrize("where", ["saved+approved", "step_succeeded", "closed+report_filed"])
def test_an_event_acknowledged_before_its_commit_would_be_seen_as_lost(
    tmp_path: Path, where: str, early: bool
) -> None:
    """The control: killed before COMMIT, only a process that speaks too early was wrong."""
    arena = Arena(tmp_path)
    victim = arena.start(
        "run", arena.plan(), "-q", orders={"early": early, "die": f"inserted {where}"}
    )
    assert victim.end().code == -9
    rows = rows_of(arena.store)
    check_log(rows)
    missing = range(len(rows) + 1, len(rows) + 2 + where.count("+"))
    assert lost(rows, victim.acks) == (list(missing) if early else [])
    assert early or len(victim.acks) == len(rows)
