"""The views of planning: what a page and a list of candidates show after each event."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import pytest

from statelog.domain.event import Event, Recorded
from statelog.domain.planning import algorithm_run as run
from statelog.domain.planning import session
from statelog.domain.planning.estimate import Estimate
from statelog.domain.planning.ranking import rank
from statelog.projections.planning import PLANNING_VIEWS, planning_candidates, planning_session
from statelog.projections.planning.scatter import scatter
from statelog.projections.replay import replay
from tests.domain.planning.problems import found, problem, promising
from tests.projections.recorded import Log

S, A, B = "session/s", "session/s/run/a", "session/s/run/b"
CREATED = session.Created(problem(deadline=9.0), (session.Selection("a"), session.Selection("b")))
FIRST = found(promising(8.0, 2.0), algorithm="a")
SECOND = found(promising(6.0, 4.0), algorithm="a")
BEGIN: tuple[tuple[str, Event], ...] = (
    (S, CREATED),
    (A, run.Queued("a", "time", {"beam": 1}, Estimate(0.4))),
    (B, run.Queued("b", "cost", {}, Estimate())),
)
RUNNING: tuple[tuple[str, Event], ...] = (
    *BEGIN,
    (S, session.Started()),
    (A, run.Started()),
    (A, run.CandidateEmitted(FIRST)),
    (A, run.CandidateEmitted(SECOND)),
)


def records(events: Iterable[tuple[str, Event]]) -> list[Recorded]:
    """A log of these events, each on its stream."""
    log = Log()
    for stream, event in events:
        log.append(stream, event)
    return log.events


def page(events: Iterable[tuple[str, Event]]) -> dict[str, Any]:
    return replay(planning_session, records(events))["s"]


def candidates(events: Iterable[tuple[str, Event]]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = replay(planning_candidates, records(events))["s"]["candidates"]
    return shown


def test_a_page_shows_what_was_asked():
    """1.2, 1.3: blanks are left out, and runs have the ids that candidates name."""
    shown = page(BEGIN)
    about = shown["session"]
    assert about["id"] == "s"
    assert about["status"] == "queued"
    assert about["deadlineSeconds"] == 9.0
    assert about["workflowVersionId"] == "chain-v1"
    assert about["algorithms"] == [{"id": "a"}, {"id": "b"}]
    assert (about["progress"], about["candidateCount"]) == (0.0, 0)
    assert not {"failureReason", "startedAt", "completedAt", "budget"} & about.keys()
    first, second = shown["algorithmRuns"]
    assert (first["id"], first["planningSessionId"]) == ("s-a", "s")
    assert first["configuration"] == {"beam": 1}
    assert first["estimate"]["durationSeconds"] == 0.4
    assert "configuration" not in second


def test_the_first_start_counts():
    """startedAt is set once, over interruptions of session and run."""
    again = ((S, session.Requeued()), (S, session.Started()), (A, run.Started()))
    before, after = page(RUNNING), page((*RUNNING, *again))
    assert after["session"]["startedAt"] == before["session"]["startedAt"]
    assert after["algorithmRuns"][0]["startedAt"] == before["algorithmRuns"][0]["startedAt"]
    assert page((*RUNNING, (S, session.Requeued())))["session"]["status"] == "queued"


def test_progress_counts_runs_that_ended_and_the_one_that_runs():
    """planning case 13: a failed run has ended too, and a cancelled session stays where it was."""
    failed = (*RUNNING, (A, run.Failed("no")), (B, run.Started()), (B, run.Progressed(0.5)))
    assert page(failed)["session"]["progress"] == 0.75
    called_off = ((S, session.Cancelled()), (B, run.Cancelled()))
    assert page((*failed, *called_off))["session"]["progress"] == 0.75
    assert page((*failed, (B, run.Completed())))["session"]["progress"] == 1.0


def test_candidates_are_ranked_by_the_end():
    """planning case 18: rank 0 and no flags until then."""
    waiting = candidates(RUNNING)
    assert [each["rank"] for each in waiting] == [0, 0]
    assert [each["id"] for each in waiting] == [SECOND.id, FIRST.id]
    ended = ((A, run.Completed()), (B, run.Completed()))
    ranked = candidates((*RUNNING, *ended, (S, session.Completed(rank([FIRST, SECOND])))))
    assert [(each["id"], each["rank"]) for each in ranked] == [(SECOND.id, 1), (FIRST.id, 2)]
    assert all(each["paretoOptimal"] and not each["dominated"] for each in ranked)
    assert ranked[0]["plan"]["assignmentCount"] == 3
    assert ranked[0]["createdAt"]


def test_a_session_without_candidates_has_an_empty_list():
    """It is there, so there is a row."""
    assert candidates(BEGIN) == []


def test_a_row_of_the_past_needs_its_own_streams_only():
    """`below` names them, also for ids that a stream has to write otherwise; no id is no stream."""
    for view in PLANNING_VIEWS:
        assert view.below("a/b") == "session/a%2Fb"
        assert view.below("") is None


def test_a_picture_escapes_what_it_is_given():
    """Ids come from people, and one point alone is a picture too."""
    shown = candidates(RUNNING)
    drawn = scatter("<s>&", [{**shown[0], "algorithm": "<b>"}])
    assert "&lt;s&gt;&amp;" in drawn
    assert "<b>" not in drawn
    assert scatter("s", []).count("<circle") == 0


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-300, 3.7, 1e16, 1e308], ids=repr)
@pytest.mark.parametrize("other", [None, 0.0, 1e308], ids=repr)
def test_a_picture_has_room_for_every_number(value: float, other: float | None):
    """Scales add to the largest and divide the smallest; what they cannot hold ends at the edge."""
    shown = candidates(RUNNING)[0]
    given = [value] if other is None else [value, other]
    points = [{**shown, "predicted": {"makespanSeconds": each, "cost": each}} for each in given]
    drawn = scatter("s", points)
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert drawn.count("<circle") == len(given) + 1
    assert "nan" not in drawn


def test_a_picture_is_xml_whatever_the_names():
    """Control characters and such are no characters of XML."""
    drawn = scatter("a\x00\x1b[31m\ufffe\n", candidates(RUNNING))
    assert ElementTree.fromstring(drawn)[0].text == (
        "Candidates of session a\\x00\\x1b[31m\\ufffe\\n"
    )


def test_documents_are_plain_json():
    """And the same from any order of hashing."""
    events: list[Recorded] = records(RUNNING)
    for view in PLANNING_VIEWS:
        assert json.loads(json.dumps(replay(view, events)["s"])) == replay(view, events)["s"]
