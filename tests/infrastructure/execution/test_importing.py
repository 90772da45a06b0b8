"""Spool directories and plan documents become history and plans of the log (D20)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Invalid
from statelog.domain.execution.imported import UNCORRELATED
from statelog.domain.execution.plan import PLAN, delete, save
from statelog.domain.execution.slot import SLOT, Held
from statelog.infrastructure.audit import audit
from statelog.infrastructure.execution import spool_files
from statelog.infrastructure.execution.importing import Importer, Item
from statelog.infrastructure.execution.spool_files import step_path
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.json_values import to_json
from statelog.projections.execution.due import due
from statelog.projections.execution.plan_document import plan_document
from statelog.projections.execution.plan_status import attempts_of, plan_status, snapshot_of
from statelog.projections.execution.spool import spool as spooled
from statelog.projections.replay import replay
from tests.infrastructure.execution.spools import (
    FIRST,
    OLD,
    SECOND,
    THIRD,
    Spool,
    document,
    marked,
)

RULEBOOK = "statelog.domain.execution.rulebook:RULEBOOK"


@dataclass
class Desk:
    """A folder to import, and a journal to import into."""

    folder: Path
    journal: Journal
    items: list[Item] = field(default_factory=list)

    def take(self, path: Path | None = None) -> list[Item]:
        """Import, and what became of each thing this time."""
        self.items = []
        Importer(self.journal, "alice", self.items.append).take(path or self.folder)
        return self.items

    def shown(self, plan_id: str = "p") -> Any:
        """The snapshot of a plan; None when there is none."""
        return to_json(replay(plan_status, self.journal.read()).get(plan_id))

    def found(self, *results: str) -> dict[str, str | None]:
        """Why each thing with one of these results was so, by its place."""
        return {each.place: each.why for each in self.items if each.result in results}

    def documents(self, *values: Any, name: str = "plans.jsonl") -> Path:
        """A file of documents as JSON lines."""
        path = self.folder / name
        path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
        return path


@pytest.fixture
def desk(tmp_path: Path):
    """A fresh folder and a store outside it."""
    folder = tmp_path / "spool"
    folder.mkdir()
    with Journal() as journal:
        yield Desk(folder, journal)


@pytest.fixture
def spool(desk: Desk) -> Spool:
    """The spool of plan p in that folder."""
    return Spool(desk.folder)


def test_an_attempt_comes_in_with_all_its_steps(desk: Desk, spool: Spool):
    """Snapshot, list and history say what the spool says, at the times the spool says."""
    spool.ran()
    taken = desk.take()
    assert [(each.kind, each.result, each.events) for each in taken] == [
        ("attempt", "imported", 6),
        ("floor", "imported", 1),
    ]
    shown = desk.shown()
    assert (shown["projection"], shown["realm"], shown["scope"]) == (
        "attempt",
        "lab",
        {"kind": "run", "id": "r1"},
    )
    assert shown["attempt"]["state"] == "finished"
    assert shown["attempt"]["execution_authority"] == "daemon"
    a, b = shown["steps"].values()
    assert (a["state"], a["ts"], a["progress"]) == (
        "step.succeeded",
        "2024-01-01T10:00:03.000000Z",
        100,
    )
    assert a["artifacts"] == [{"digest": None, "key": "out", "path": "a.txt"}]
    assert (a["step_name"], a["run_id"], a["metrics"]) == ("Step a", "run-a", {"n": 1})
    assert (b["state"], b["outcome"]) == ("step.skipped", "reused")
    assert [each["execution_id"] for each in attempts_of(desk.journal.read())] == [FIRST]


def test_the_same_again_adds_nothing(desk: Desk, spool: Spool):
    """Attempts, documents, floor and history of older times alike."""
    spool.ran()
    Spool(desk.folder, "q").older("x", "run_1", "step.started", 1)
    desk.documents(document(), document("r", status="draft"))
    desk.take()
    head = desk.journal.head()
    again = desk.take()
    assert desk.journal.head() == head
    assert {each.result for each in again} == {"unchanged"}


def test_an_interrupted_import_goes_on(desk: Desk, spool: Spool, monkeypatch: pytest.MonkeyPatch):
    """Whatever moment it ends at, the next one completes the log that one import makes."""
    for execution_id in (FIRST, SECOND):
        spool.ran(execution_id)
    desk.documents(document())
    commit, whole = Journal.commit, []
    for most in range(5):
        with Journal() as journal:
            left = most

            def failing(self: Journal, *changes: Any, **given: Any) -> Any:
                nonlocal left
                if left == 0:
                    raise KeyboardInterrupt
                left -= 1
                return commit(self, *changes, **given)

            monkeypatch.setattr(Journal, "commit", failing)
            try:
                Importer(journal, "alice", lambda item: None).take(desk.folder)
            except KeyboardInterrupt:
                pass
            else:
                assert most == 4
            monkeypatch.setattr(Journal, "commit", commit)
            Importer(journal, "alice", lambda item: None).take(desk.folder)
            whole.append([(r.stream, r.version, r.name, r.data) for r in journal.read()])
    assert all(each == whole[0] for each in whole)


def test_a_running_attempt_is_added_to_and_an_ended_one_is_not(desk: Desk, spool: Spool):
    """One without a report shows as running; the first report stands."""
    spool.start()
    spool.event("a", "step.started", 1)
    desk.take()
    assert desk.shown()["attempt"]["state"] == "running"
    assert desk.shown()["steps"]["a"]["state"] == "step.started"
    spool.event("a", "step.succeeded", 2)
    spool.report(outcomes={"a": "succeeded"}, termination_reason="cancelled", outcome="failed")
    (added, *_) = desk.take()
    assert (added.result, added.events) == ("added to", 2)
    assert desk.shown()["attempt"]["termination_reason"] == "cancelled"
    spool.event("b", "step.started", 1)
    (late, *_) = desk.take()
    assert (late.result, late.events) == ("skipped", 0)
    assert "1 later events" in (late.why or "")
    assert desk.shown()["steps"]["b"]["state"] == "unreached"


def test_a_running_attempt_is_shown_until_a_newer_one_is_observed(desk: Desk, spool: Spool):
    """Also one that comes in later (D20, 7.4)."""
    spool.start(FIRST)
    spool.start(THIRD)
    desk.take()
    assert desk.shown()["attempt"]["execution_id"] == THIRD
    spool.ran(SECOND)
    desk.take()
    assert desk.shown()["attempt"]["execution_id"] == THIRD
    assert desk.shown()["attempt"]["state"] == "running"


def test_a_success_without_an_outcome_in_the_report_is_interrupted(desk: Desk, spool: Spool):
    """Case 109: no artifacts, and the progress of the last event that ended nothing."""
    spool.start()
    spool.event("a", "step.started", 1)
    spool.event("a", "step.progress", 2, progress=60)
    made = {"key": "out", "path": "a.txt", "digest": None}
    spool.event("a", "step.succeeded", 3, artifacts=[made])
    spool.report(outcomes={}, termination_reason="orchestration_error", outcome="failed")
    desk.take()
    a = desk.shown()["steps"]["a"]
    assert (a["state"], a["outcome"], a["artifacts"], a["progress"]) == (
        "interrupted",
        None,
        [],
        60,
    )


DAMAGED: dict[str, Callable[[Spool], Path]] = {
    "is not JSON": lambda spool: _text(spool.start(), '{"type": "plan.att'),
    "must hold an object that is not empty": lambda spool: _text(spool.start(), "{}"),
    "must hold an object that is not empty ": lambda spool: _text(spool.start(), "[1]"),
    "is not UTF-8": lambda spool: _bytes(spool.start(), b'{"type": "\xff"}'),
    "appears twice": lambda spool: _text(spool.start(), '{"type": 1, "type": 2}'),
    "64 bits": lambda spool: _text(spool.start(), '{"type": 123456789012345678901234}'),
    "type: must be plan.attempt_started": lambda spool: spool.start(type="plan.attempt_report"),
    "execution_id: names another attempt": lambda spool: spool.start(execution_id=SECOND),
    "run_token: must be an integer": lambda spool: spool.start(run_token="1"),
    "plan_generation: must be text": lambda spool: spool.start(plan_generation=3),
    "execution_owner: must be text": lambda spool: spool.start(execution_owner=["x"]),
    "report: must be an object": lambda spool: _report(spool, report=[]),
    "report.execution_id: names another": lambda spool: _report(
        spool, report={"execution_id": SECOND}
    ),
}


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _report(spool: Spool, **changes: Any) -> Path:
    path = spool.report()
    return spool.write(path, {**json.loads(path.read_text()), **changes})


@pytest.mark.parametrize("why", DAMAGED)
def test_a_damaged_record_does_not_count(desk: Desk, spool: Spool, why: str):
    """Case 110: the attempt is not observed, and the import says why; no event is written."""
    path = DAMAGED[why](spool)
    desk.take()
    told = desk.found("skipped")
    assert why.strip() in (told[str(path.relative_to(desk.folder))] or "")
    assert "neither a start nor a report" in (told[f"lab/p/attempts/{FIRST}"] or "")
    assert desk.shown() is None
    assert [each.name for each in desk.journal.read()] == ["execution.slot.floor_raised"]


def test_a_report_alone_makes_an_attempt_observed(desk: Desk, spool: Spool):
    """With a corrupt start too: what the start would have said is null (7.2)."""
    _text(spool.start(), "{")
    spool.event("a", "step.started", 1)
    spool.report(outcomes={"a": "succeeded"}, run_token="odd")
    desk.take()
    shown = desk.shown()
    assert shown["attempt"]["execution_authority"] is None
    assert shown["attempt"]["plan_generation"] == "g1"
    assert (shown["attempt"]["run_token"], shown["scope"]) == (None, {"kind": "run", "id": "r1"})
    assert list(shown["steps"]) == ["a", "b"]
    assert shown["steps"]["a"]["state"] == "step.succeeded"


def test_without_an_inventory_the_directories_are_the_steps(desk: Desk, spool: Spool):
    """The last resort of 7.2."""
    spool.event("z", "step.started", 1)
    spool.report(step_ids=None, outcomes={})
    desk.take()
    assert list(desk.shown()["steps"]) == ["z"]


def test_what_is_no_event_of_the_attempt_is_left(desk: Desk, spool: Spool):
    """Case 110, for steps (6.6): damaged, of another attempt or none, and what is no event."""
    spool.start(steps=("a",))
    spool.event("a", "step.started", 1)
    step = spool.attempt(FIRST) / "steps" / "a"
    (step / "0009_dir.json").mkdir()
    (step / "0003_step_progress.json.tmp").write_text("{}")
    _text(step / "0004_step_progress.json", '{"type": "step.pro')
    spool.event("a", "step.failed", 5, execution_id=SECOND)
    spool.write(step / "0006_step_failed.json", spool.of_step("a", "step.failed", 6))
    spool.event("a", "step.progress", 7, progress="half")
    spool.event("a", "", 8)
    spool.event("stray", "step.started", 1)
    spool.write(step.parent / "a" / "nested" / "0001_step_failed.json", {"type": "step.failed"})
    desk.take()
    under = f"lab/p/attempts/{FIRST}/steps"
    assert set(desk.found("skipped")) == {
        f"{under}/a/0004_step_progress.json",
        f"{under}/a/0005_step_failed.json",
        f"{under}/a/0006_step_failed.json",
        f"{under}/a/0007_step_progress.json",
        f"{under}/a/0008_.json",
    }
    assert set(desk.found("passed over")) == {
        f"{under}/a/0009_dir.json",
        f"{under}/a/0003_step_progress.json.tmp",
        f"{under}/stray",
    }
    assert desk.shown()["steps"]["a"]["state"] == "step.started"
    assert desk.shown()["steps"].keys() == {"a"}


def test_events_are_ordered_by_number_and_count_once(desk: Desk, spool: Spool):
    """By `seq`, not by name; the same `eid` once; those without a number last (7.4)."""
    spool.start(steps=("a",))
    step = spool.attempt(FIRST) / "steps" / "a"
    for seq, name, eid in ((2, "0001", "x"), (10, "0002", "y"), (1, "0003", "z"), (True, "0", "t")):
        fields = {**spool.correlated(FIRST), **spool.of_step("a", "note", seq), "eid": eid}
        spool.write(step / f"{name}_note.json", {**fields, "said": eid})
    spool.write(step / "0004_note.json", {**fields, "seq": 11, "eid": "x", "said": "again"})
    desk.take()
    events = [each.event for each in desk.journal.history("plan/p/attempt")]
    assert [event.payload["said"] for event in events[1:]] == ["z", "x", "y", "t"]  # type: ignore[attr-defined]
    assert [event.seq for event in events[1:]] == [1, 2, 10, 11]  # type: ignore[attr-defined]


ODD = (
    *("lane_1/process", "1.lane", "a%b", "..lane", "lane..", " spaced ", "lane\\process"),
    *("lane/0001_step_started.json", "%x", "A.JSON", "x.json.TMP/y", "a", "a/b", "../../out", ""),
)


def test_odd_step_ids_are_found_by_name_and_stay_inside(desk: Desk, spool: Spool):
    """Every ID has one directory of its own, below `steps`, and nested ones never mix (6.4)."""
    spool.start(steps=ODD)
    for step_id in ODD:
        spool.event(step_id, "step.started", 1, params={"id": step_id})
    desk.take()
    assert desk.found("skipped", "passed over") == {}
    shown = desk.shown()["steps"]
    assert {shown[step_id]["run_id"] for step_id in ODD} == {f"run-{step_id}" for step_id in ODD}
    paths = [tuple(step_path(step_id)) for step_id in ODD]
    assert len(set(paths)) == len(ODD)
    assert all(part not in ("", ".", "..") and "/" not in part for path in paths for part in path)
    assert [tuple(map(marked, step_id.split("/"))) for step_id in ODD] == paths


def test_nothing_outside_the_folder_is_read(desk: Desk, spool: Spool, tmp_path: Path):
    """Symbolic links to a record, a step, an attempt, a plan or a realm are left, and said."""
    outside = Spool(tmp_path / "outside")
    outside.ran(FIRST)
    outside.ran(SECOND)
    spool.start(THIRD)
    record = spool.attempt(THIRD) / "plan_attempt_report.json"
    record.symlink_to(outside.report(THIRD, {"a": "succeeded"}))
    steps = spool.attempt(THIRD) / "steps"
    steps.mkdir()
    (steps / "a").symlink_to(outside.attempt(FIRST) / "steps" / "a")
    (spool.plan / "attempts" / SECOND).symlink_to(outside.attempt(SECOND))
    (desk.folder / "lab" / "q").symlink_to(outside.plan)
    (desk.folder / "loop").symlink_to(desk.folder)
    (desk.folder / "plans.json").symlink_to(outside.write(tmp_path / "d.json", document("s")))
    desk.take()
    told = desk.found("skipped")
    assert {Path(place).name for place in told} == {
        *("plan_attempt_report.json", "a", SECOND, "q", "loop", "plans.json")
    }
    assert all("symbolic link" in (why or "") for why in told.values())
    assert desk.shown()["attempt"]["state"] == "running"
    assert {step["state"] for step in desk.shown()["steps"].values()} == {"pending"}
    assert list(replay(plan_status, desk.journal.read())) == ["p"]


def test_what_is_no_plain_file_and_what_is_huge_is_left(
    desk: Desk, spool: Spool, monkeypatch: pytest.MonkeyPatch
):
    """A pipe is not waited for, and a large file is not read whole."""
    monkeypatch.setattr(spool_files, "RECORD_LIMIT", 1000)
    os.mkfifo(spool.attempt(FIRST) / "plan_attempt_started.json")
    spool.start(SECOND, note="x" * 1000)
    os.mkfifo(desk.folder / "pipe.json")
    desk.take()
    told = " ".join(str(why) for why in desk.found("skipped").values())
    assert told.count("is not a plain file") == 2
    assert "is larger than 1000 bytes" in told
    assert desk.shown() is None


def test_what_cannot_be_listed_is_said(desk: Desk, spool: Spool, monkeypatch: pytest.MonkeyPatch):
    """It counts as empty, and the report says so, as it may hide a higher execution ID."""
    spool.ran()
    scandir = os.scandir

    def forbidden(path: Path) -> Any:
        if Path(path).name == "attempts":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", forbidden)
    desk.take()
    assert desk.found("skipped")["lab/p/attempts"] == "cannot be listed: Permission denied"
    assert desk.journal.head() == 0


def test_unknown_fields_of_an_event_are_said(desk: Desk, spool: Spool):
    """An event of the engine's has no room for them; a job is kept, as it is shown (1.4)."""
    spool.start(steps=("a",))
    spool.event("a", "step.started", 1, colour="blue", job={"id": 7})
    spool.event("a", "custom.note", 2, colour="green")
    desk.take()
    assert ["colour" in str(why) for why in desk.found("skipped").values()] == [True]
    assert desk.shown()["steps"]["a"]["job"] == {"id": 7}
    assert desk.shown()["steps"]["a"]["state"] == "step.started"
    note = [each.event for each in desk.journal.read()][3]
    assert note.payload == {"colour": "green"}  # type: ignore[attr-defined]


def test_a_history_without_executions_is_labelled_as_such(desk: Desk, spool: Spool):
    """Case 113: the newest run of each step, and `attempts` is none of them (6.7)."""
    spool.older("a", "run_1", "step.failed", 1, error="old", kind="permanent")
    spool.older("a", "run_2", "step.started", 1)
    spool.older("a", "run_2", "step.succeeded", 2)
    spool.older("b", "run_1", "step.started", 1)
    spool.older("b", "run_1", "step.failed", 2, execution_id=FIRST)
    spool.older("b", "run_2", "step.failed", 1, execution_id=FIRST)
    spool.older("note", "run_1", "custom.note", 1)
    (spool.plan / "c").mkdir()
    (spool.plan / "attempts" / FIRST).mkdir(parents=True)
    (item, floor) = (each for each in desk.take() if each.kind != "file")
    assert (item.kind, item.result, item.execution_id) == ("history", "imported", None)
    assert floor.kind == "floor"
    shown = desk.shown()
    assert (shown["projection"], shown["attempt"]) == ("legacy", None)
    assert {id: step["state"] for id, step in shown["steps"].items()} == {
        "a": "step.succeeded",
        "b": "step.started",
        "c": "unknown",
        "note": "unknown",
    }
    assert shown["scope"] == {"kind": "run", "id": "r1"}
    assert attempts_of(desk.journal.read()) == []


def test_a_history_without_executions_gives_way_to_any_attempt(desk: Desk, spool: Spool):
    """Case 113: it is used only while no attempt is observed, whatever that one's ID is."""
    spool.older("a", "run_2", "step.started", 1)
    desk.take()
    assert desk.shown()["projection"] == "legacy"
    spool.start("!", steps=("z",))
    desk.take()
    assert desk.shown()["attempt"]["execution_id"] == "!"
    assert list(desk.shown()["steps"]) == ["z"]
    spool.ran()
    desk.take()
    assert desk.shown()["attempt"]["execution_id"] == FIRST


def test_old_files_beside_an_attempt_are_not_shown(desk: Desk, spool: Spool):
    """Case 113: correlated and uncorrelated data never mix."""
    spool.ran()
    spool.older("old", "run_9", "step.failed", 1, error="x", kind="permanent")
    desk.take()
    assert list(desk.shown()["steps"]) == ["a", "b"]
    assert not any(UNCORRELATED in each.stream for each in desk.journal.read())


def test_the_floor_is_the_highest_directory_that_is_canonical(desk: Desk, spool: Spool):
    """Case 99: empty and corrupt ones count, other plans and non-canonical IDs do not (6.3)."""
    spool.ran(FIRST)
    spool.attempt(SECOND)
    _text(spool.start(THIRD), "{")
    spool.start("zzz")
    (spool.plan / "attempts" / "20250101T000000000000Z_0001").write_text("a file")
    other = Spool(desk.folder, "q")
    other.ran(OLD)
    desk.take()
    assert desk.journal.load(SLOT, "p").state.floor == THIRD
    assert desk.journal.load(SLOT, "q").state.floor == OLD
    assert desk.shown()["attempt"]["execution_id"] == FIRST


def test_an_id_later_than_now_sets_no_floor_and_is_told(tmp_path: Path):
    """D20: or no execution of this log could order after it."""
    with Journal(clock=lambda: 1_704_103_200_000_000) as journal:  # 2024-01-01T10:00:00Z
        desk = Desk(tmp_path, journal)
        Spool(tmp_path).ran(SECOND)
        desk.take()
        told = [each for each in desk.items if each.kind == "floor"]
        assert [(each.result, each.execution_id) for each in told] == [("skipped", SECOND)]
        assert journal.load(SLOT, "p").state.floor is None
        assert desk.shown()["attempt"]["execution_id"] == SECOND


def test_an_attempt_of_this_log_is_never_touched(desk: Desk, spool: Spool):
    """Neither one that is there, nor one that is reserved."""
    spool.ran()
    reserved = Held(FIRST, "h", 1, "g", 0, "daemon", None)
    desk.journal.execute(SLOT, "p", lambda slot: [reserved], actor="alice")
    (item, *_) = desk.take()
    assert (item.result, item.why) == (
        "skipped",
        "the log has an attempt of this ID that was not imported",
    )
    assert desk.shown() is None


def test_imported_attempts_are_history(desk: Desk, spool: Spool):
    """Never held, closed or settled: a running one takes no slot, and is in nobody's way (D20)."""
    spool.start()
    desk.documents(document())
    desk.take()
    assert desk.journal.load(SLOT, "p").state.execution_id is None
    shown = replay(due, desk.journal.read())["p"]
    assert (shown["due"], shown["abandoned"]) == ("yes", 0)


def test_the_audit_finds_nothing_wrong_with_an_import(tmp_path: Path):
    """A regular history is a legal log: attempts that never had the slot are no finding."""
    folder = tmp_path / "spool"
    spool = Spool(folder)
    spool.ran(FIRST)
    spool.start(SECOND)
    spool.event("a", "step.started", 1, SECOND)
    spool.older("x", "r", "step.started", 1)
    Spool(folder, "q").older("x", "r", "step.started", 1)
    (folder / "plans.json").write_text(json.dumps([document(), document("q")]))
    tmp_path.chmod(0o700)
    with Journal(tmp_path / "s.db") as journal:
        Importer(journal, "alice", lambda item: None).take(folder)
        found = audit(journal, (RULEBOOK,))
    assert [str(each) for each in found.violations] == []
    assert found.events > 10


def test_a_document_comes_in_verbatim(desk: Desk):
    """But for the revision, which is ours; one that is approved stays approved (D20)."""
    desk.documents(document())
    (item,) = desk.take()
    assert (item.kind, item.result, item.plan_id, item.events) == ("document", "imported", "p", 2)
    stored = to_json(replay(plan_document, desk.journal.read())["p"])
    assert stored == {**document(), "_rev": "2", "latest_request_succeeded": False}
    assert desk.journal.load(PLAN, "p").state.status.value == "approved"


@pytest.mark.parametrize("name", ["one.json", "list.json", "lines.jsonl", "lines.ndjson"])
def test_documents_come_in_files_of_three_shapes(desk: Desk, name: str):
    """One object, a list, or one a line; from a file or from the folder it is in."""
    docs = [document("p")] if name == "one.json" else [document("p"), document("q")]
    text = json.dumps(docs[0] if name == "one.json" else docs)
    if "lines" in name:
        text = "\n\n".join(map(json.dumps, docs)) + "\n"
    path = _text(desk.folder / name, text)
    desk.take(path)
    assert {each.plan_id for each in desk.items} == {each["_id"] for each in docs}
    assert {each.result for each in desk.take()} == {"unchanged"}


def test_a_document_that_differs_is_a_new_event(desk: Desk):
    """Case 87's other half: and the one before it may come back the same way."""
    for token, events in ((0, 2), (1, 2), (0, 2), (0, 0)):
        desk.documents(document(run_token=token))
        (item,) = desk.take()
        assert item.events == events
    assert desk.journal.load(PLAN, "p").version == 6


def test_a_document_is_compared_with_the_stored_one_too(desk: Desk):
    """What this store shows of a plan it has is nothing new, though it never was imported."""
    body = {"plan_id": "p", "realm": "lab", "steps": []}
    given = {"body": body, "generation": "g1", "approved": True}
    desk.journal.execute(PLAN, "p", save, actor="alice", **given)
    shown = to_json(replay(plan_document, desk.journal.read())["p"])
    desk.documents({**shown, "_rev": "17-abc"})
    assert [each.result for each in desk.take()] == ["unchanged"]
    desk.documents({**shown, "run_token": 1})
    assert [each.result for each in desk.take()] == ["imported"]


def test_a_deleted_plan_comes_back(desk: Desk):
    """The same document is nothing known once the plan is gone."""
    desk.documents(document())
    desk.take()
    desk.journal.execute(PLAN, "p", delete, actor="alice")
    assert [each.result for each in desk.take()] == ["imported"]


def test_a_step_keeps_a_scope_of_its_own(desk: Desk, spool: Spool):
    """As its events carry it (1.8); the first of them stands for a plan without one (7.2)."""
    spool.start(scope={}, steps=("a", "b"))
    spool.event("a", "step.started", 1, scope={"kind": "lane", "id": "1"})
    spool.event("b", "step.started", 1, scope={"kind": "lane", "id": "2"})
    desk.take()
    events = list(desk.journal.history("plan/p/attempt"))
    first = {"kind": "lane", "id": "1"}
    assert desk.shown()["scope"] == first
    assert [each["scope"] for each in spooled(events)] == [
        first,
        first,
        {"kind": "lane", "id": "2"},
    ]


def test_two_documents_of_one_plan_come_in_only_when_they_agree(desk: Desk):
    """Which of two that differ is the plan's, nobody can say."""
    desk.documents(document(), document("q"), document("q", _rev="18-x"))
    desk.documents(document(run_token=3), name="others.jsonl")
    desk.take()
    assert {(each.plan_id, each.result) for each in desk.items} == {
        ("p", "skipped"),
        ("q", "imported"),
        ("q", "passed over"),
    }
    assert "others.jsonl:1 and plans.jsonl:1 differ" in str(desk.found("skipped")["plans.jsonl:1"])
    assert desk.journal.load(PLAN, "p").version == 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[]", "must be an object"),
        (b'{"_id": 3}', "_id: must be a string"),
        (b'{"plan": {}}', "_id: must be a string"),
        (b'{"_id": "a/b"}', "one path part"),
        (b'{"_id": "_design/x"}', "one path part"),
        (b'{"_id": "x", "_deleted": true}', "says that the document is gone"),
        (b'{"_id": "x", "n": NaN}', "which JSON cannot hold"),
        (b'{"_id": "x"', "is not JSON"),
        (b'{"_id": "\xff"}', "UTF-8"),
        (b'{"_id": "x", "_id": "y"}', "appears twice"),
        (b'{"_id": "x", "a": ' + b"[" * 300 + b"]" * 300 + b"}", "nested"),
    ],
)
def test_a_damaged_document_is_skipped_and_the_next_one_comes_in(desk: Desk, line: bytes, why: str):
    """The reason names the place."""
    _bytes(desk.folder / "plans.jsonl", line + b"\n" + json.dumps(document("q")).encode())
    bad, good = desk.take()
    assert (bad.result, bad.place, good.result) == ("skipped", "plans.jsonl:1", "imported")
    assert why in str(bad.why)


def test_a_folder_with_nothing_to_import_is_refused(desk: Desk):
    """It says what was looked for."""
    with pytest.raises(Invalid, match="REALM/PLAN/attempts"):
        desk.take()


def test_one_attempt_of_an_import_can_be_looked_at(desk: Desk, spool: Spool):
    """Also one that is not the newest."""
    spool.ran(FIRST)
    spool.start(SECOND)
    desk.take()
    events = desk.journal.history("plan/p")
    shown = to_json(snapshot_of(events, FIRST))
    assert shown["attempt"]["execution_id"] == FIRST
    assert shown["steps"]["a"]["state"] == "step.succeeded"
