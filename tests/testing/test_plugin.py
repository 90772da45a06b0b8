"""The plug-in is there wherever statelog is installed, and shows stories as stories."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.clock import NEW_YEAR, FakeClock
from tests.domain.desk import TICKET, Opened, note, open_ticket

HEAD = """
from statelog.infrastructure.testing import *
from tests.domain.desk import *
"""


def run(folder: Path, source: str, *options: str) -> str:
    """Run a test module far from this repository's settings; what pytest prints."""
    (folder / "test_it.py").write_text(textwrap.dedent(HEAD + textwrap.dedent(source)))
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    quiet = ["-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *options, "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout


def test_a_violation_is_shown_as_its_story(tmp_path: Path):
    """No frames of the exploration, no source of the test; place, name and story."""
    printed = run(
        tmp_path,
        """
        def test_nothing_happens():
            act = Action("bob counts", lambda world: world.remember("bob", 1), by="bob")
            explore(World(), [act], [always("quiet", lambda w: w.memory("bob") is None)])
        """,
    )
    shown = printed[printed.index("test_it.py:5") :].splitlines()[:4]
    assert shown == [
        "test_it.py:5: test_nothing_happens",
        "always quiet: does not hold after 1 move",
        "  1. bob counts",
        "  => bob remembers 1",
    ]
    assert "explore.py" not in printed
    assert "1 failed" in printed


def test_a_scenario_fails_where_it_stands(tmp_path: Path):
    """With the line of the test, both columns, and no frame of the kit."""
    printed = run(
        tmp_path,
        """
        def test_bob():
            outcome = scenario(TICKET, Opened("No heat")).when(close, answer="a")
            outcome.then(Closed("b"))
        """,
    )
    assert ">       outcome.then(Closed('b'))" in printed.replace('"', "'")
    assert "!   answer='b' |   answer='a'" in printed
    assert "scenario.py" not in printed


def test_a_lifecycle_test_is_one_line(tmp_path: Path):
    """Each claim is a case with its own name."""
    printed = run(
        tmp_path,
        """
        broken = Lifecycle(Status.NEW, [(Opened, Status.NEW, SAME)], reserved=list(Status)[1:])
        broken.targets[Opened][id(Status.OPEN)] = Status.CLOSED
        broken._new_targets[Opened][id(Status.OPEN)] = Status.CLOSED
        test_lifecycle = lifecycle_test(broken)
        """,
        "-rf",
    )
    assert "FAILED test_it.py::test_lifecycle[OPEN Opened is refused]" in printed
    assert "FAILED test_it.py::test_lifecycle[OPEN Opened is what the machine says]" in printed
    assert "2 failed, 7 passed" in printed


def test_other_failures_are_shown_as_ever(tmp_path: Path):
    """And violations that a test expects are none."""
    printed = run(
        tmp_path,
        """
        import pytest

        def test_expected():
            with pytest.raises(Violation):
                explore(World(), [], [always("never", lambda world: False)])

        def test_plain():
            assert 1 + 1 == 3
        """,
    )
    assert "assert (1 + 1) == 3" in printed
    assert "1 failed, 1 passed" in printed


def test_every_test_gets_a_journal_of_its_own(journal: Journal, journal_clock: FakeClock):
    """In memory, with a clock that stands still until it is told, and ids that can be read."""
    assert journal.head() == 0
    first = journal.execute(TICKET, "42", open_ticket, title="No heat", actor="bob").recorded[0]
    journal_clock.advance(1.5)
    second = journal.execute(TICKET, "42", note, text="a", actor="bob").recorded[0]
    assert (first.time, second.time) == (NEW_YEAR, NEW_YEAR + 1_500_000)
    assert (first.command, second.command) == ("id-1", "id-2")
    assert journal.load(TICKET, "42").state == TICKET.fold([Opened("No heat"), second.event])


@pytest.mark.parametrize("name", ["journal", "journal_clock"])
def test_the_fixtures_are_documented(name: str, pytestconfig: pytest.Config):
    """`pytest --fixtures` shows what they are."""
    plugin = pytestconfig.pluginmanager.get_plugin("statelog")
    assert getattr(plugin, name).__doc__
