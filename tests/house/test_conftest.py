"""The suite's own rules bite: no skip in CI, and no store whose views are wrong."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from statelog.domain.execution import plan
from statelog.infrastructure import Journal, Views
from statelog.infrastructure.testing.contracts import COUNTER, start
from statelog.projections.execution import EXECUTION_VIEWS
from tests.conftest import audit_store, verify_store
from tests.house.repo import ROOT

SKIPS = "import pytest\n\n\ndef test_skips():\n    pytest.skip('no reason')\n"
SKIPS_ALL = "import pytest\n\npytest.skip('no reason', allow_module_level=True)\n"
XFAILS = "import pytest\n\n\n@pytest.mark.xfail\ndef test_known():\n    assert False\n"
STORES = (
    "def test_makes_a_store(store_path):\n"
    "    store_path.touch()\n"
    "    store_path.with_name('statelog.db.views.db').touch()\n"
)
DAMAGES = STORES.replace("(store_path)", "(store_path, damaged_store)").replace(
    "    store_path.touch()\n", "    store_path.touch()\n    damaged_store(store_path)\n"
)
DIFFERS = "\n\ndef verify_store(store):\n    return ['row 7 differs']\n"


def suite(folder: Path, test: str, *options: str, ci: str = "", add: str = "") -> tuple[int, str]:
    """Run a suite of one file under this suite's rules: exit code and output."""
    rules = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (folder / "conftest.py").write_text(rules + add)
    (folder / "test_it.py").write_text(test)
    plain = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder)]
    base = ["--basetemp", str(folder / "base")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, *base, *options, "test_it.py"],
        cwd=folder,
        env={**os.environ, "CI": ci},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    shutil.rmtree(folder / "base", ignore_errors=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize("test", [SKIPS, SKIPS_ALL], ids=["test", "module"])
def test_a_skip_fails_in_ci_only(test: str, tmp_path: Path):
    """At a desk a skip is a skip; in CI nobody would read it."""
    code, output = suite(tmp_path, test, ci="true")
    assert code in (1, 2)
    assert "nothing may be skipped in CI" in output
    code, output = suite(tmp_path, test)
    assert code in (0, 5)
    assert "1 skipped" in output


def test_an_expected_failure_is_no_skip(tmp_path: Path):
    """A test marked as failing may fail, in CI too."""
    code, output = suite(tmp_path, XFAILS, ci="true")
    assert (code, "1 xfailed" in output) == (0, True)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_wrong_view_fails_the_suite(options: tuple[str, ...], tmp_path: Path):
    """Every test passed, and yet a store is wrong: the run fails and names it."""
    code, output = suite(tmp_path, STORES, *options, add=DIFFERS)
    assert code == 1
    assert "1 passed" in output
    assert output.count("statelog.db: row 7 differs") == 1


def test_a_store_damaged_on_purpose_is_left_out(tmp_path: Path):
    """A test that damages a store says so."""
    code, output = suite(tmp_path, DAMAGES, add=DIFFERS)
    assert (code, "differs" in output) == (0, False)


def test_a_changed_row_is_a_wrong_view(store_path: Path, damaged_store: Callable[[Path], None]):
    """A stored view is right until somebody changes a byte of it, and leaves nothing behind."""
    body = {"plan_id": "quiet", "realm": "test", "steps": []}
    with Journal(store_path) as journal, Views(journal, EXECUTION_VIEWS) as views:
        journal.execute(plan.PLAN, "quiet", plan.save, actor="bob", body=body, generation="1")
        views.catch_up()
    assert verify_store(store_path) == []
    damaged_store(store_path)
    with closing(sqlite3.connect(f"{store_path}.views.db")) as db:
        db.execute("UPDATE plan_document SET document = replace(document, 'quiet', 'loud')")
        db.commit()
    found = verify_store(store_path)
    assert found
    assert all("plan_document 'quiet'" in difference for difference in found)


def test_a_store_that_cannot_be_read_is_a_wrong_one(tmp_path: Path):
    """Verification that did not happen is not a success."""
    (found,) = verify_store(tmp_path / "none.db")
    assert "cannot be verified" in found


def test_an_event_that_breaks_a_rule_is_named(
    store_path: Path, damaged_store: Callable[[Path], None]
):
    """A header changed by hand, beside events that only a test has declared."""
    body = {"plan_id": "quiet", "realm": "test", "steps": []}
    with Journal(store_path) as journal:
        journal.execute(plan.PLAN, "quiet", plan.save, actor="bob", body=body, generation="1")
        journal.execute(COUNTER, "one", start, actor="bob")
    assert audit_store(store_path) == []
    damaged_store(store_path)
    with closing(sqlite3.connect(store_path)) as db:
        db.execute("UPDATE events SET actor = 'mallory' WHERE position = 1")
        db.commit()
    (found,) = audit_store(store_path)
    assert found.startswith("event 1: a header has its hash")
