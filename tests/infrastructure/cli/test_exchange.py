"""`log erase`, `archive`, `restore`, `export` and `import`: words, codes, JSON, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from statelog.infrastructure.cli import log_erase
from statelog.infrastructure.cli.app import app
from statelog.infrastructure.journal import Journal
from tests.infrastructure.cli.desk import Desk, a_step

WORD = "a-private-word"
ERASE = ("log", "erase", "p", "--reason", "asked for", "--yes")


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """A desk where a plan was run, with a step that has something private."""
    (desk.folder / WORD).touch()
    plan = desk.plan(a_step("a", "needs", params={"flag": WORD}))
    assert desk("run", plan).code == 0
    return desk


def rows(store: Path) -> list[object]:
    with Journal(store, read_only=True) as journal:
        return list(journal.rows())


def test_a_plan_runs_on_after_an_erasure(ran: Desk):
    """Views stand, seals hold, audits find nothing; token and execution id go on."""
    first = ran("run", ran.folder / "plan.json", "--json").json
    status = ran("plan", "status", "p", "--json").out
    assert ran("log", "seal", "-o", "checkpoint.txt").code == 0
    done = ran(*ERASE)
    assert (done.code, "streams below plan/p erased" in done.out) == (0, True)
    assert "erasing: " in done.err
    assert ran("plan", "status", "p", "--json").out == status
    assert "(erased)" in ran("log", "history", "p").out
    for command in (
        ["views", "verify"],
        ["log", "audit"],
        ["log", "verify-seal", "checkpoint.txt"],
    ):
        assert ran(*command).code == 0
    assert ran("plan", "request", "p").code == 0
    again = ran("run", ran.folder / "plan.json", "--json").json
    assert again["execution_id"] > first["execution_id"]
    assert ran("views", "verify").code == 0
    assert ran("log", "audit").code == 0
    told = ran("plan", "attempts", "p", "--json")
    assert [each["execution_id"] for each in told.lines] == [again["execution_id"]]
    assert "erased or archived, and are passed over" in told.err


def test_an_erasure_as_json(ran: Desk):
    done = ran(*ERASE, "--json").json
    assert (done["prefix"], done["action"], done["swept"]) == ("plan/p", "erased", True)
    assert done["streams"] == 3
    assert done["events"] > 6
    assert ran(*ERASE, "--json").json["events"] == 0
    assert "nothing is left to be erased below plan/p" in ran(*ERASE).out


def test_somebody_has_to_agree(ran: Desk, monkeypatch: pytest.MonkeyPatch):
    """Where nobody can be asked it has to be said; no is no."""
    asked = ran("log", "erase", "p", "--reason", "x")
    assert asked.code == 2
    assert "give --yes" in asked.err
    before = rows(ran.store)
    asking = ["log", "erase", "p", "--reason", "x", "--store", str(ran.store)]
    monkeypatch.setattr(log_erase, "_asks", lambda: True)
    no = CliRunner().invoke(app, asking, input="n\n")
    assert "Erase 10 payloads below plan/p for ever?" in no.stderr
    assert (no.exit_code, rows(ran.store)) == (1, before)
    assert CliRunner().invoke(app, asking, input="y\n").exit_code == 0
    assert rows(ran.store) != before


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("erase", "nobody", "--reason", "x", "--yes"), 1, "no stream 'plan/nobody'"),
        (("erase", "p", "--reason", " ", "--yes"), 2, "reason: is a text that says why"),
        (("erase", "p"), 2, "--reason"),
        (("erase", "erasure/x", "--reason", "x", "--yes"), 1, "no stream 'erasure/x'"),
        (("restore", "plan.json"), 2, "line 1"),
        (("import", "plan.json"), 2, "line 1"),
        (("import", "nowhere.jsonl"), 1, "nowhere.jsonl"),
        (("export", "-o", "plan.json"), 1, "plan.json is there already"),
        (("archive", "p"), 2, "--output"),
    ],
)
def test_what_cannot_be_done(ran: Desk, arguments: tuple[str, ...], code: int, why: str):
    """One line that says what, and the code for it."""
    done = ran("log", *arguments)
    assert done.code == code, done.err
    assert why in done.err
    assert "Traceback" not in done.err


def test_what_is_asked_for_is_not_erased(ran: Desk):
    assert ran("plan", "request", "p").code == 0
    done = ran(*ERASE)
    assert done.code == 1
    assert "plan/p is not finished: its request is not finished" in done.err
    assert ran("log", "erase", "plan/p/attempt", "--reason", "x", "--yes").code == 0


def test_an_archive_and_back(ran: Desk):
    before = rows(ran.store)
    done = ran("log", "archive", "p", "-o", "p.jsonl")
    assert (done.code, "archived" in done.out) == (0, True)
    assert WORD in Path("p.jsonl").read_text()
    assert ran("log", "restore", "p.jsonl", "--json").json["events"] == len(before)
    assert rows(ran.store)[: len(before)] == before
    assert f"{len(before):,} were there already" in ran("log", "restore", "p.jsonl").out


@pytest.mark.parametrize("form", ["jsonl", "cloudevents"])
def test_out_and_in(ran: Desk, form: str):
    """By a file and by a pipe, to the byte."""
    made = ran("log", "export", "--format", form, "-o", "log.jsonl", "--json").json
    assert (made["events"], made["left_out"], made["format"]) == (len(rows(ran.store)), 0, form)
    assert Path("log.jsonl").stat().st_mode & 0o777 == 0o600
    done = ran("log", "import", "log.jsonl", "--store", "copy.db", "--json")
    assert done.json["events"] == made["events"]
    assert "importing: " in done.err
    assert rows(Path("copy.db")) == rows(ran.store)
    statelog = [sys.executable, "-m", "statelog", "log"]
    lines = subprocess.run(
        [*statelog, "export", "--format", form, "--store", ran.store],
        capture_output=True,
        check=True,
    )
    assert lines.stdout == Path("log.jsonl").read_bytes()
    again = subprocess.run(
        [*statelog, "import", "-", "--store", "piped.db"],
        input=lines.stdout,
        capture_output=True,
        check=True,
    )
    assert b"events imported into piped.db" in again.stdout
    assert rows(Path("piped.db")) == rows(ran.store)


def test_an_export_of_one_plan(ran: Desk):
    """A bare plan id is one, as everywhere."""
    found = [json.loads(line) for line in ran("log", "export", "p").out.splitlines()]
    assert {each["stream"].split("/")[1] for each in found} == {"p"}
    assert ran("log", "audit", "dump.jsonl").code == 1


def test_an_exported_log_is_audited(ran: Desk):
    ran(*ERASE)
    assert ran("log", "export", "-o", "log.jsonl").code == 0
    assert ran("log", "audit", "log.jsonl").code == 0


def test_the_past_before_an_erasure_says_so(ran: Desk):
    assert ran(*ERASE).code == 0
    row = ran("log", "at", "4", "plan_document", "p")
    assert row.code == 1
    assert "its payload was erased, as event" in row.err
    every = ran("log", "at", "4", "plan_document")
    assert (every.code, every.out) == (0, "")
    assert "row 'p' is left out" in every.err
    assert ran("log", "at", "now", "plan_document", "p").code == 0
