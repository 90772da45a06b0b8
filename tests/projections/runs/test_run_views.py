"""What people see of a run: its page, its line, plan against observation, its critical path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from statelog.domain.event import Event
from statelog.domain.runs import activities as on
from statelog.domain.runs.events import HandleStopped, Placed, Started, TaskKept, TransferCompleted
from statelog.domain.runs.run import complete, fail
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.simulation import run_simulation
from statelog.projections.replay import replay
from statelog.projections.runs import RUN_VIEWS
from statelog.projections.runs.comparison import run_comparison
from statelog.projections.runs.gantt import PAD, TOP, gantt
from statelog.projections.runs.run_page import run_page
from statelog.projections.runs.run_summary import run_summary
from tests.domain.runs.bundles import diamond, golden, request
from tests.domain.runs.stories import BEGUN, completed, moved, running, told
from tests.projections.recorded import Log

A = {"activity_id": "a"}
PREDICTED = {
    "ingest": (0, 6.2),
    "left": (6.2, 17.5),
    "right": (6.2, 15.4),
    "merge": (17.8, 21.0),
}


def page(*events: Event) -> Mapping[str, Any]:
    found = shown(run_page, events)
    assert found is not None
    return found


def shown(view: Any, events: Sequence[Event]) -> Mapping[str, Any] | None:
    """The document of a view over a run with these events."""
    log = Log()
    if events:
        log.append("run/r1", *events)
    return replay(view, log.events).get("r1")


def tasks(found: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {task["activityId"]: task for task in found["activities"]}


def simulated(document: dict[str, Any]) -> list[Event]:
    """The events of a simulated run."""
    with Journal() as journal:
        run_simulation(journal, request(document), actor="w")
        return [recorded.event for recorded in journal.history("run")]


def promised() -> dict[str, Any]:
    """The diamond with predictions that forget the transfers."""
    document = diamond(plan={"predicted": {"makespanSeconds": 21.0, "cost": 0.03}})
    for each in document["plan"]["assignments"]:
        start, finish = PREDICTED[each["activityId"]]
        each |= {"predictedStartAt": start, "predictedFinishAt": finish}
        each["predictedRuntimeSeconds"] = finish - start
    return document


@pytest.mark.parametrize("view", RUN_VIEWS, ids=[view.name for view in RUN_VIEWS])
def test_before_it_started_there_is_nothing_to_see(view: Any):
    """planning case 70, 52: not even a run that is created."""
    assert shown(view, []) is None
    assert view.below("r/1") == "run/r%2F1"


def test_a_page_has_every_part():
    """Section 5: tasks under `activities`, transfers under `dataTransfers`."""
    found = page(*told(*completed("a")))
    assert list(found) == [
        *("run", "activities", "dataTransfers", "handles", "events", "dataObjects"),
        *("dataLocations", "artifactMaterializations", "artifactTransferRuns"),
    ]
    assert found["run"]["status"] == "running"
    assert (found["run"]["activityCount"], found["run"]["completedActivityCount"]) == (1, 1)


def test_a_task_is_shown_as_it_is_named():
    """1.8: its id, where it was planned and where it ran, and its figures."""
    task = tasks(page(*told(*completed("a"))))["a"]
    assert (task["id"], task["attempt"], task["executionRunId"]) == ("r1:a", 1, "r1")
    assert (task["plannedResourceId"], task["allocatedResourceId"]) == ("m", "m")
    assert (task["startedAt"], task["finishedAt"], task["cost"]) == (100.0, 110.0, 20.0)
    assert task["metadata"]["pricePerSecond"] == 2.0
    assert "failureReason" not in task


def test_a_handle_is_shown_with_its_timing():
    """1.9."""
    seen = {"started_at": 103.0, "submitted_at": 101.0, "container_started_at": 104.0}
    given = {**A, "external_id": "77", **seen}
    steps = [each for each in running("a") if each[0] is not on.handle_running]
    (handle,) = page(*told(*steps, (on.handle_running, given)))["handles"]
    assert (handle["id"], handle["externalId"], handle["status"]) == ("r1:a", "77", "running")
    assert handle["metadata"] == {"submittedAt": 101.0, "containerStartedAt": 104.0}
    assert "exitCode" not in handle


def test_a_running_task_under_a_stopped_handle_reads_failed():
    """planning case 73: with the handle's reason, although the log says that it runs."""
    events = told(*running("a"))
    task = tasks(page(*events, HandleStopped("a", 105.0, "the node went away")))["a"]
    assert (task["status"], task["failureReason"]) == ("failed", "the node went away")
    assert task["finishedAt"] == 105.0
    assert tasks(page(*events))["a"]["status"] == "running"


def test_a_failed_run_has_no_figures():
    """4.5: makespan and cost are 0, and the reason is there."""
    found = page(
        *told(
            *running("a"),
            (on.handle_failed, {**A, "at": 105.0, "failure": "exit code 3"}),
            (fail, {"reason": "activity a failed: exit code 3", "at": 106.0}),
        )
    )
    run = found["run"]
    assert (run["status"], run["makespanSeconds"], run["cost"]) == ("failed", 0, 0)
    assert run["failureReason"] == "activity a failed: exit code 3"
    assert {name: task["status"] for name, task in tasks(found).items()} == {
        "a": "failed",
        "b": "cancelled",
        "c": "cancelled",
    }
    assert (run["activityCount"], run["completedActivityCount"]) == (3, 0)


def test_the_events_of_a_page_are_those_of_the_original():
    """1.12: types, ids and payloads; what is queued or prepared is no event."""
    found = page(
        *told(
            *completed("a"),
            *running("b", 120.0),
            (on.handle_failed, {"activity_id": "b", "at": 130.0, "failure": "exit code 1"}),
            (fail, {"reason": "b failed", "at": 131.0}),
        )
    )
    assert [(each["eventType"], each["aggregateId"]) for each in found["events"]] == [
        ("execution.run.started", "r1"),
        ("activity.started", "r1:a"),
        ("activity.completed", "r1:a"),
        ("activity.started", "r1:b"),
        ("activity.failed", "r1:b"),
        ("activity.failed", "r1:c"),
        ("execution.run.failed", "r1"),
    ]
    assert found["events"][0]["payload"] == {"mode": "real", "schedulePlanId": "p1"}
    assert found["events"][-1]["payload"] == {"reason": "b failed"}
    done, failed, cancelled = (found["events"][at]["payload"] for at in (2, 4, 5))
    assert (done["status"], done["runtimeSeconds"]) == ("completed", 10.0)
    assert (failed["status"], failed["failureReason"]) == ("failed", "exit code 1")
    assert (cancelled["status"], cancelled["failureReason"]) == ("cancelled", "b failed")
    assert len({each["id"] for each in found["events"]}) == len(found["events"])


def test_a_page_of_the_middle_of_a_run_is_what_was_then():
    """A row that exists grows the count, and nothing is known of what comes."""
    events = simulated(diamond())
    counts = [page(*events[:at])["run"]["activityCount"] for at in range(1, len(events) + 1)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 4)


def test_a_line_says_what_its_page_says():
    """Of a simulated, a failed, a kept and a half-done run."""
    stories: list[Sequence[Event]] = [
        simulated(diamond()),
        simulated(golden(links=[])),
        told(*completed("a"), (on.record_transfer, {"transfer": moved("a", "b")})),
        (BEGUN, TaskKept("a", "r0", "m", "local", 5.0, 9.0)),
    ]
    for events in stories:
        for upto in range(1, len(events) + 1):
            assert shown(run_summary, events[:upto]) == page(*events[:upto])["run"]


def test_plan_and_observation_are_compared_by_activity():
    """Start, end, runtime, place and cost, each with what they differ by."""
    found = shown(run_comparison, simulated(promised()))
    assert found is not None
    assert found["makespanSeconds"] == {"planned": 21.0, "observed": 23.1, "delta": 2.1}
    assert found["cost"] == {"planned": 0.03, "observed": 0.0336, "delta": 0.0036}
    left = next(each for each in found["activities"] if each["activityId"] == "left")
    assert left["startSeconds"] == {"planned": 6.2, "observed": 8.3, "delta": 2.1}
    assert left["resourceId"] == {"planned": "cluster", "observed": "cluster", "same": True}
    assert left["runtimeSeconds"]["observed"] == 10.0


def test_what_was_not_planned_is_not_compared():
    """A plan without predictions promised nothing, least of all a makespan of 0."""
    found = shown(run_comparison, simulated(diamond()))
    assert found is not None
    assert found["makespanSeconds"] == {"observed": 23.1}
    assert all("planned" not in each["startSeconds"] for each in found["activities"])


def test_what_was_not_seen_is_left_out():
    found = shown(run_comparison, told(*running("a")))
    assert found is not None
    a, b, _ = found["activities"]
    assert (a["startSeconds"], a["finishSeconds"]) == ({"observed": 0.0}, {})
    assert (b["status"], b["startSeconds"]) == ("new", {})


def test_a_real_run_is_compared_from_its_first_start():
    """P16: seconds, not seconds since 1970."""
    events = told(*completed("a", 105.0), *completed("b", 120.0), *completed("c", 121.0))
    done = told(
        *completed("a", 105.0),
        *completed("b", 120.0),
        *completed("c", 121.0),
        (complete, {"at": 131.0}),
    )
    for found in (shown(run_comparison, events), shown(run_comparison, done)):
        assert found is not None
        observed = [each["startSeconds"]["observed"] for each in found["activities"]]
        assert observed == [0.0, 15.0, 16.0]
        assert found["makespanCounts"] == "from the first task's start"


def path(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """The critical path: activity, why it began when it did, and after whom."""
    found = shown(run_comparison, events)
    assert found is not None
    return [
        (step["activityId"], step["because"], step.get("waitedFor"))
        for step in found["criticalPath"]
    ]


def test_the_critical_path_of_the_diamond():
    """Through the slower side, with the transfers it waited for."""
    assert path(simulated(diamond())) == [
        ("ingest", "start", None),
        ("left", "transfer", "ingest"),
        ("merge", "transfer", "left"),
    ]


def test_a_lane_may_be_critical():
    """What waited for its lane follows whoever had it."""
    document = diamond(data=[], links=[])
    for each in document["plan"]["assignments"]:
        each |= {"resourceId": "lab", "coreId": "lab-core-0"}
    for order, name in enumerate(("ingest", "left", "right", "merge")):
        entry = next(e for e in document["plan"]["assignments"] if e["activityId"] == name)
        entry["orderOnResource"] = order
    assert path(simulated(document)) == [
        ("ingest", "start", None),
        ("left", "predecessor", "ingest"),
        ("right", "lane", "left"),
        ("merge", "predecessor", "right"),
    ]


def test_the_critical_path_of_a_real_run():
    """Of what was seen, with how long each began after what it waited for."""
    events = told(*completed("a", 105.0), *completed("b", 120.0), *completed("c", 121.0, 20.0))
    found = shown(run_comparison, events)
    assert found is not None
    assert path(events) == [("a", "start", None), ("c", "predecessor", "a")]
    assert [step["slackSeconds"] for step in found["criticalPath"]] == [105.0, 6.0]
    assert path(told()) == []


def test_what_was_kept_is_named():
    """planning case 76: with the run that did it, and without times of its own."""
    kept = (BEGUN, TaskKept("a", "r0", "elsewhere", "local", 5.0, 9.0))
    task = tasks(page(*kept))["a"]
    assert (task["status"], task["allocatedResourceId"]) == ("completed", "elsewhere")
    assert task["metadata"]["keptFromRunId"] == "r0"
    found = shown(run_comparison, kept)
    assert found is not None
    assert found["activities"][0]["keptFromRunId"] == "r0"
    assert found["activities"][0]["startSeconds"] == {}


SVG = "{http://www.w3.org/2000/svg}"


def drawn(events: Sequence[Event]) -> ElementTree.Element:
    """The picture of a run, parsed: it is well-formed."""
    found = shown(run_comparison, events)
    assert found is not None
    return ElementTree.fromstring(gantt(found))


@pytest.mark.parametrize("seconds", [0.0, 5e-324, 1e-300, 1e308], ids=repr)
def test_a_run_of_any_length_is_drawn(seconds: float):
    """Also one whose names XML cannot hold."""
    found = shown(run_comparison, simulated(diamond()))
    assert found is not None
    entry = {
        **found["activities"][0],
        "name": "a\x00\x1b",
        "startSeconds": {"planned": 0.0, "observed": seconds / 2},
        "finishSeconds": {"planned": seconds, "observed": seconds},
    }
    makespan = {"planned": seconds, "observed": seconds, "delta": 0.0}
    drawn = gantt({**found, "activities": [entry], "makespanSeconds": makespan})
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert drawn.count("<title>") == 3


def bars(root: ElementTree.Element, look: str) -> list[ElementTree.Element]:
    return [
        each
        for group in root.iter(f"{SVG}g")
        for each in group.iter(f"{SVG}rect")
        if each.get("class") == look
    ]


def test_a_picture_has_a_bar_for_each_plan_and_observation():
    """Those on the critical path stand out, and each says its times."""
    root = drawn(simulated(promised()))
    assert [len(bars(root, look)) for look in ("plan", "critical", "seen")] == [4, 3, 1]
    titles = [each.text for each in root.iter(f"{SVG}title")]
    assert "left: observed 8.3 s to 19.6 s, completed" in titles
    labels = {each.text for each in root.iter(f"{SVG}text")}
    assert {"Ingest", "Left", "Right", "Merge", "lab", "cluster-core-0"} <= labels


def test_bars_lie_where_their_times_are():
    """The last end of all is the right edge of the chart, and nothing overlaps on a track."""
    root = drawn(simulated(promised()))
    ends = [
        float(each.get("x", 0)) + float(each.get("width", 0))
        for look in ("plan", "critical", "seen")
        for each in bars(root, look)
    ]
    assert max(ends) == pytest.approx(936, abs=0.2)


def test_overlapping_bars_get_tracks_of_their_own():
    """In a real run order is a preference: two of one lane may run at once."""
    events = told(*completed("a", 105.0), *completed("b", 120.0), *completed("c", 121.0))
    tops = {each.get("y") for look in ("seen", "critical") for each in bars(drawn(events), look)}
    assert len(tops) == 2
    assert min(float(top or 0) for top in tops) == TOP + PAD


def test_lanes_are_in_the_order_of_their_numbers():
    """Core 2 comes before core 10."""
    many = [Placed(f"a{n}", "m", core_id=f"core-{n}", predicted_finish_at=1.0) for n in (10, 2, 1)]
    root = drawn([replace(BEGUN, activities=tuple(many))])
    labels = [each.text for each in root.iter(f"{SVG}text")]
    assert [each for each in labels if each and each.startswith("core")] == [
        *("core-1", "core-2", "core-10")
    ]


def test_any_name_can_be_drawn():
    """Nothing of a name becomes markup, and a run of which nothing is known is drawn too."""
    odd = replace(BEGUN, activities=(Placed("<a&\"'>", "<m>", name="<b>" * 40),))
    assert drawn([odd]) is not None
    assert len(list(drawn([odd]).iter(f"{SVG}b"))) == 0
    empty = Started("simulation", "p", "w", ())
    assert drawn([empty]) is not None


def test_a_transfer_says_what_moved():
    """1.10, with the links it took."""
    found = page(*simulated(diamond()))
    first = found["dataTransfers"][0]
    assert (first["id"], first["bytes"], first["route"]) == (
        "r1:ingest:left",
        50_000_000,
        ["lab-cluster"],
    )
    assert isinstance(moved("a", "b"), TransferCompleted)
