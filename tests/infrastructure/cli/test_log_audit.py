"""`log audit`, `log coverage` and `lifecycle --from-log`: exit codes, tables, JSON, drawings."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from statelog.domain.errors import Refused
from statelog.domain.execution import plan as plans
from statelog.domain.execution.plan import PLAN
from statelog.infrastructure.audit import envelope
from statelog.infrastructure.cli.lifecycles import lifecycles
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.jsonl import line_of
from tests.infrastructure.cli.desk import Desk, a_step

TICKETS = """
from dataclasses import dataclass
from enum import Enum

from statelog.domain import Aggregate, Event, Lifecycle


class AuditedOpened(Event, name="test.audited.opened"):
    title: str


class AuditedClosed(Event, name="test.audited.closed"):
    answer: str


class AuditedStatus(Enum):
    NEW, OPEN, CLOSED = "new", "open", "closed"


@dataclass(frozen=True)
class Ticket:
    status: AuditedStatus = AuditedStatus.NEW


TICKET = Aggregate(
    "ticket",
    Ticket(),
    lambda ticket, event: ticket,
    Lifecycle(
        AuditedStatus.NEW,
        [
            (AuditedOpened, AuditedStatus.NEW, AuditedStatus.OPEN),
            (AuditedClosed, AuditedStatus.OPEN, AuditedStatus.CLOSED),
        ],
        name="ticket",
    ),
)
"""


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """A desk where a plan was run."""
    assert desk("run", desk.plan(a_step("a"))).code == 0
    return desk


def test_a_log_that_is_right(ran: Desk):
    """One line, exit code 0; the same of a dump of it, and as JSON."""
    events = len(ran.events())
    done = ran("log", "audit")
    assert (done.code, done.out) == (0, f"{events} events audited: no rule is broken\n")
    with Journal(ran.store, read_only=True) as journal:
        dump = b"".join(line_of(row) + b"\n" for row in journal.rows())
    Path("dump.jsonl").write_bytes(dump)
    told = {"events": events, "violations": 0, "rules": {}, "ok": True}
    for words in ([], ["dump.jsonl"], ["--jobs", "2"]):
        done = ran("log", "audit", *words, "--json")
        assert (done.code, done.json) == (0, told)


def test_a_log_that_is_wrong(ran: Desk, damaged_store: Callable[[Path], None]):
    """The rule by name, the events that show it, exit code 1."""
    damaged_store(ran.store)
    with closing(sqlite3.connect(ran.store)) as db:
        db.execute("UPDATE events SET actor = 'mallory' WHERE position = 3")
        db.execute("UPDATE events SET actor = 'mallory' WHERE position = 5")
        db.commit()
    done = ran("log", "audit", "--limit", "1")
    assert done.code == 1
    first = f"event 3: {envelope.HEADERS}: the header is not the one that was hashed"
    assert done.out.splitlines()[0] == first
    assert done.out.splitlines()[1].strip().startswith("3 plan/p")
    assert f"2  {envelope.HEADERS}" in done.out
    lines = ran("log", "audit", "--json").lines
    assert [each["position"] for each in lines if each.get("rule") == envelope.HEADERS] == [3, 5]
    assert lines[0].keys() == {"position", "rule", "why", "stream", "events"}
    assert lines[0]["events"][-1].keys() == {"position", "stream", "version", "name"}
    assert lines[-1].keys() == {"events", "violations", "rules", "ok"}
    assert lines[-1]["ok"] is False


def test_a_dump_with_a_line_that_is_no_event(ran: Desk):
    """The line by its number."""
    done = ran("log", "audit", ran.file("nonsense\n", "dump.jsonl"))
    assert done.code == 1
    assert done.out.startswith(f"line 1: {envelope.LINES}: line: is not JSON")


def test_a_dump_that_is_not_there(ran: Desk):
    """The file, and what the system says."""
    done = ran("log", "audit", "none.jsonl")
    assert (done.code, done.error) == (1, "none.jsonl: No such file or directory")


def test_what_others_declared_is_audited_with_them(desk: Desk):
    """Streams of an aggregate that nobody named are told; named, they are held to its table."""
    desk.file(TICKETS, "audited_tickets.py")
    code = """
from statelog.infrastructure import Journal
from audited_tickets import *

with Journal("s.db") as journal:
    new = journal.load(TICKET, "1")
    journal.commit(new.decide(lambda ticket: [AuditedOpened("a"), AuditedClosed("b")]), actor="bob")
"""
    subprocess.run([sys.executable, "-c", code], cwd=desk.folder, check=True)
    done = desk.process("log", "audit", "--json")
    assert done.code == 1
    assert set(done.lines[-1]["rules"]) == {envelope.NAMES, "a stream is of a declared aggregate"}
    named = ["--with", "audited_tickets:TICKET"]
    done = desk.process("log", "audit", *named, "--jobs", "2")
    assert (done.code, done.out) == (0, "2 events audited: no rule is broken\n")
    done = desk.process("log", "coverage", *named, "--lifecycle", "ticket", "--json")
    assert [row["count"] for row in done.json["rows"]] == [1, 1]


def test_a_name_that_cannot_be_imported(ran: Desk):
    """Wrong input, and why."""
    done = ran("log", "audit", "--with", "none_such:X")
    assert done.code == 2
    assert done.error.startswith("with: none_such:X cannot be imported: ModuleNotFoundError")


def test_coverage_counts_what_the_log_did(ran: Desk):
    """All lifecycles in a table, one row by row, refusals with their status."""
    with Journal(ran.store) as journal, pytest.raises(Refused):
        journal.execute(PLAN, "unheard-of", plans.approve, actor="bob")
    table = ran("log", "coverage").out
    assert table.splitlines()[0].split() == [
        *("lifecycle", "transitions", "statuses", "events", "refused"),
    ]
    rows = [line.split() for line in table.splitlines()[1:]]
    told = {row[0]: row[1:] for row in rows}
    assert told["slot"] == ["3", "of", "8", "3", "of", "3", "3", "0"]
    assert told["plan"][-1] == "1"
    one = ran("log", "coverage", "--lifecycle", "slot")
    held = next(line for line in one.out.splitlines() if line.startswith("execution.slot.held"))
    assert held.split() == ["execution.slot.held", "FREE", "HELD", "1"]
    plan = ran("log", "coverage", "--lifecycle", "plan", "--json").json
    assert plan["refused"] == [{"status": "ABSENT", "rule": "plan_exists", "count": 1}]
    reporting = [each for each in ran("log", "coverage", "--json").lines if each["name"] == "slot"]
    assert [each["status"] for each in reporting[0]["statuses"]] == ["FREE", "HELD", "REPORTING"]
    assert [each["visited"] for each in reporting[0]["statuses"]] == [True, True, True]
    assert reporting[0]["statuses"][1]["median_s"] > 0


def test_a_lifecycle_nobody_declared(ran: Desk):
    """Wrong input: the names there are."""
    for words in (["log", "coverage", "--lifecycle", "none"], ["lifecycle", "none"]):
        done = ran(*words)
        assert done.code == 2
        assert "'none' is not one of plan, slot" in done.error


@pytest.mark.parametrize("name", ["plan", "slot", "attempt", "step"])
def test_a_diagram_with_what_the_log_did(ran: Desk, name: str):
    """SVG in a file, Mermaid on stdout, numbers in both, and in the table."""
    done = ran("lifecycle", name, "--from-log", "--format", "svg", "-o", "d.svg")
    assert (done.code, done.out) == (0, "")
    root = ElementTree.fromstring(Path("d.svg").read_text())
    texts = " ".join(each.text for each in root.iter() if each.text)
    assert "1 x" in texts
    mermaid = ran("lifecycle", name, "--from-log", "--format", "mermaid").out
    assert mermaid.startswith("stateDiagram-v2\n")
    assert " 1 x" in mermaid
    assert "count" in ran("lifecycle", name, "--from-log").out.splitlines()[0]
    told = ran("lifecycle", name, "--from-log", "--json").json
    assert sum(row["count"] for row in told["used"]["rows"]) >= 1


def test_a_drawing_needs_no_log(tmp_path: Path, desk: Desk):
    """Of one lifecycle; all of them are no single picture."""
    for name in lifecycles():
        ElementTree.fromstring(desk("lifecycle", name, "--format", "svg").out)
    done = desk("lifecycle", "--format", "svg")
    assert done.code == 2
    assert done.error.startswith("name: is needed")
