"""The views of plan execution in a real store, beside a real journal."""

from __future__ import annotations

from pathlib import Path

from statelog.domain.execution import plan as plans
from statelog.domain.execution.attempt import ATTEMPT, block, start, start_step, succeed
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.slot import SLOT, admit
from statelog.domain.execution.spec import PlanSpec, StepSpec
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS
from tests.projections.execution.stories import FIRST

SPEC = PlanSpec(
    "p", "lab", {"kind": "run"}, tuple(StepSpec(id, id.upper(), "m:f") for id in ("z", "a"))
)


def test_views_caught_up_now_and_then_equal_their_rebuild(store_path: Path):
    """Byte for byte, with planned order kept, after every commit of a short story."""
    with Journal(store_path) as journal, Views(journal, EXECUTION_VIEWS) as views:
        body = SPEC.to_json()
        journal.execute(PLAN, "p", plans.save, body=body, generation="g1", approved=True, actor="b")
        views.catch_up()
        slot = {"plan_generation": "g1", "run_token": 0, "execution_authority": "daemon"}
        held = journal.execute(
            *(SLOT, "p", admit),
            **slot,
            execution_id=FIRST,
            holder="h1",
            plan_version=2,
            execution_owner=None,
            actor="bob",
        )
        id = ("p", FIRST)
        given = {"plan": SPEC, "slot": held.state, "started_at": "2026-01-01T10:00:00Z"}
        journal.execute(ATTEMPT, id, start, **given, actor="bob")
        views.catch_up()
        ran = {"step_id": "z", "run_id": "r", "fingerprint": "f", "params": {}}
        journal.execute(ATTEMPT, id, start_step, **ran, actor="bob")
        journal.execute(ATTEMPT, id, succeed, step_id="z", metrics={"n": 1}, actor="bob")
        views.catch_up()
        journal.execute(ATTEMPT, id, block, steps=[("a", ["z"], ["z"])], actor="bob")
        assert views.verify() == []
        shown = views.get("plan_status", "p")
        assert shown is not None
        assert list(shown["steps"]) == ["z", "a"]
        document = views.get("plan_document", "p")
        assert document is not None
        assert (document["_rev"], document["approved_by"]) == ("2", "b")
        due = views.get("due", "p")
        assert due is not None
        assert due["due"] == "no"
