"""What the suite notices of every mistake that can be made in a declared lifecycle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statelog.domain.lifecycle import AnyLifecycle
from statelog.infrastructure.testing import mutants
from tests.domain.mutation import noticed
from tests.domain.test_lifecycles_page import LIFECYCLES

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("scope", "handle")


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.name)
def test_every_mutant_is_killed(lifecycle: AnyLifecycle):
    """By the page that is written by hand: no test that follows the table could."""
    built = [mutant for mutant in mutants(lifecycle) if mutant.changed is not None]
    assert built
    assert [mutant.name for mutant in built if not noticed(mutant)] == []


@pytest.mark.long
def test_how_many_mutants_the_suite_kills(capsys: pytest.CaptureFixture[str]):
    """All, with the page; and the tests of behaviour alone, printed beside it, most of them."""
    names = SHORT if os.environ.get("STATELOG_SHORT") else ()
    done = subprocess.run(
        [sys.executable, "-m", "tests.domain.mutation", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    with capsys.disabled():
        print(f"\n{done.stdout}")
    assert done.returncode == 0, done.stderr
