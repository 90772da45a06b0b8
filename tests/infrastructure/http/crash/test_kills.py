"""Server and workers are killed at random moments: no promise is broken, nothing is left behind."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.amounts import amount
from tests.infrastructure.http.crash.harness import Scene, scene

KILLS = 50
LONG = amount(1000, 100)


def kill_at_random(here: Scene, kills: int) -> None:
    """Kill the server or the worker after a moment, while a client asks for more all the time."""
    here.start_server()
    here.start_worker()
    with here.client():
        for _ in range(kills):
            time.sleep(here.chance.uniform(0.0, 0.2))
            if here.chance.random() < 0.5:
                here.kill(here.server)
                here.start_server()
            else:
                here.kill(here.worker)
                here.start_worker()


def test_servers_and_workers_are_killed(tmp_path: Path):
    """Fifty kills; then what was promised is there and has ended, once each."""
    with scene(tmp_path, 11) as here:
        kill_at_random(here, KILLS)
        here.finish()
        done = here.check()
        assert here.sessions
        assert here.unknown
        assert done["completed"]


@pytest.mark.long
def test_servers_and_workers_are_killed_at_length(tmp_path: Path):
    """A thousand kills, a hundred a store."""
    for seed in range(LONG // 100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with scene(folder, 100 + seed) as here:
            kill_at_random(here, 100)
            here.finish()
            here.check()
