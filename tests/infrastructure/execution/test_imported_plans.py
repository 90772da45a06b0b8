"""Plans that came in as documents, and run here (D20)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import StoreError
from statelog.domain.event import Recorded
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.execution_ids import format_id
from statelog.domain.execution.request import eligible
from statelog.infrastructure.execution.importing import Importer, Item
from statelog.infrastructure.execution.run_once import RunOnce
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.json_values import to_json
from statelog.projections.execution import plan_document, plan_status
from statelog.projections.replay import replay
from tests.infrastructure.execution.lab import Failing, Lab, a_step
from tests.infrastructure.execution.spools import Spool, document

NOW = 1_750_000_000_000_000


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with step functions."""
    return Lab(tmp_path)


def take(lab: Lab, *documents: dict[str, Any]) -> list[Item]:
    """Import documents into the lab's journal."""
    path = lab.folder / "plans.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in documents))
    items: list[Item] = []
    Importer(lab.journal, "alice", items.append).take(path)
    return items


def ours(session: RunOnce, body: Any, **changes: Any) -> dict[str, Any]:
    """A document for this session."""
    owner = session.coordinator.holder.id
    return document(plan=body, execution_authority="run_once", execution_owner=owner, **changes)


def stored(lab: Lab) -> Any:
    """The document of plan p as the store shows it."""
    return to_json(replay(plan_document, lab.journal.read())["p"])


BODIES: dict[str, Any] = {
    "of another plan": {"plan_id": "q", "realm": "lab", "steps": []},
    "empty": {},
    "missing": None,
    "a list": [],
    "without a realm": {"plan_id": "p", "steps": []},
    "with a step that is none": {"plan_id": "p", "realm": "lab", "steps": [3]},
}


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_is_none_is_an_invalid_document(lab: Lab, body: str) -> None:
    """Case 71: nothing runs, nothing is recorded, and the plan stays eligible."""
    with lab.session() as session:
        take(lab, ours(session, BODIES[body], plan_generation="g"))
        head = lab.journal.head()
        resolved = session.coordinator.cycle("p")
    assert resolved.resolution is Resolution.INVALID_DOCUMENT
    assert lab.journal.head() == head
    plan = lab.plan
    assert eligible(plan.status.value, plan.run_token, plan.executed_run_token)


def test_a_missing_generation_is_all_that_is_added(lab: Lab) -> None:
    """Case 72: everything else is what came, and the result is recorded against it (2.9)."""
    with lab.session() as session:
        came = ours(session, lab.body(a_step("a")), updated_at="2020-01-01T00:00:00Z")
        take(lab, came)
        seen: list[Any] = []
        lab.on_event = lambda events: seen.append(stored(lab))
        assert session.coordinator.cycle("p").succeeded
    own = {"_rev": "3", "latest_request_succeeded": False}
    generation = lab.plan.plan_generation
    assert seen[0] == {**came, **own, "plan_generation": generation}
    assert stored(lab)["last_finalized_execution"]["plan_generation"] == generation


@pytest.mark.parametrize("name", ["run_token", "executed_run_token"])
@pytest.mark.parametrize("token", ["many", None, [1], {}, ""])
def test_a_token_that_is_no_number_is_not_eligible(lab: Lab, name: str, token: Any) -> None:
    """Case 73."""
    with lab.session() as session:
        take(lab, ours(session, lab.body(a_step("a")), **{name: token}))
        assert session.coordinator.cycle("p").resolution is Resolution.NOT_ELIGIBLE
    assert lab.ran() == []


@pytest.mark.parametrize("authority", [None, "nobody", "daemon"])
def test_a_document_without_our_authority_is_nobodys(lab: Lab, authority: Any) -> None:
    """D5: a missing one is null, and may be executed by nobody."""
    with lab.session() as session:
        came = ours(session, lab.body(a_step("a")))
        take(lab, {**came, "execution_authority": authority})
        assert session.coordinator.cycle("p").resolution is Resolution.NOT_AUTHORIZED
    assert lab.ran() == []


def test_a_document_that_comes_in_during_the_run_supersedes_its_result(lab: Lab) -> None:
    """Case 87: it differs and has no generation, so nothing is recorded on it."""
    with lab.session() as session:
        came = ours(session, lab.body(a_step("a")))
        take(lab, came)

        def again(events: Sequence[Recorded]) -> None:
            if events[-1].name.endswith("step_started"):
                take(lab, {**came, "colour": "red"})

        lab.on_event = again
        resolved = session.coordinator.cycle("p")
        lab.on_event = lab.seen.extend
        assert resolved.resolution is Resolution.SUPERSEDED
        assert resolved.reason == "generation_changed"
        assert (lab.plan.executed_run_token, lab.plan.last) == (-1, None)
        assert session.coordinator.cycle("p").succeeded
    assert lab.ran() == ["a"]  # its marker holds, so the second attempt reuses it


def test_the_same_document_during_the_run_changes_nothing(lab: Lab) -> None:
    """The other half of case 87: what is known already is no change of the document."""
    with lab.session() as session:
        came = ours(session, lab.body(a_step("a")))
        take(lab, came)

        def again(events: Sequence[Recorded]) -> None:
            take(lab, came)

        lab.on_event = again
        resolved = session.coordinator.cycle("p")
    assert resolved.succeeded
    assert lab.names("plan/p").count("imported") == 1


def test_a_pending_result_is_dropped_for_a_document_that_came_in(lab: Lab) -> None:
    """Cases 80 and 82, by import: not executed while pending; then the new version runs."""
    full = StoreError("full", "the disk is full")
    with lab.session() as session:
        came = ours(session, lab.body(a_step("a")))
        take(lab, came)
        with Failing(lab.journal, lambda names: "request_finished" in names, full):
            resolved = session.coordinator.cycle("p")
            assert resolved.resolution is Resolution.FINALIZATION_PENDING
            take(lab, came)
            again = session.coordinator.cycle("p")
            assert again.resolution is Resolution.FINALIZATION_PENDING
        body = lab.body(a_step("a", params={"v": 2}))
        take(lab, {**came, "plan": body, "plan_generation": "g2"})
        assert session.coordinator.cycle("p").succeeded
    assert lab.ran() == ["a", "a"]
    assert lab.plan.last["plan_generation"] == "g2"
    assert [e.event.how for e in lab.events("plan/p/slot") if e.name.endswith("released")] == [
        "superseded",
        "recorded",
    ]


def test_a_new_attempt_orders_after_imported_ones(tmp_path: Path) -> None:
    """Cases 98 and 99: also with a clock that was set back; odd IDs set no floor."""
    now = [NOW]
    with Journal(clock=lambda: now[0]) as journal:
        lab = Lab(tmp_path, journal)
        newest = format_id(NOW, "ffff")
        spool = Spool(tmp_path / "spool")
        spool.ran(newest)
        spool.start("zzz")
        Spool(tmp_path / "spool", "q").ran(format_id(NOW - 1, "0000"))
        Importer(journal, "alice", lambda item: None).take(spool.root)
        now[0] -= 3_600_000_000
        with lab.session(clock=journal.clock) as session:
            resolved = session.run(lab.body(a_step("a")))
        assert resolved.succeeded
        assert resolved.execution_id == format_id(NOW + 1, (resolved.execution_id or "")[-4:])
        shown = to_json(replay(plan_status, journal.read())["p"])
        assert shown["attempt"]["execution_id"] == resolved.execution_id


def test_an_imported_attempt_that_runs_is_in_nobodys_way(lab: Lab) -> None:
    """D20: it is history: the plan is free, and our attempt takes its place in the snapshot."""
    spool = Spool(lab.folder / "spool")
    spool.start()
    spool.event("a", "step.started", 1)
    Importer(lab.journal, "alice", lambda item: None).take(spool.root)
    before = lab.events("plan/p/attempt")
    resolved = lab.run(a_step("a"))
    assert resolved.succeeded
    shown = to_json(replay(plan_status, lab.journal.read())["p"])
    assert shown["attempt"]["execution_id"] == resolved.execution_id
    assert lab.events("plan/p/attempt")[: len(before)] == before
