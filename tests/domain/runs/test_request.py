"""What a request for a run must be to be accepted, and to be begun (4.1, 2.5, P10, P19)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from statelog.domain.errors import Invalid, Malformed, Refused
from statelog.domain.runs.admission import admitted
from statelog.domain.runs.events import Placed, Started, TaskKept
from statelog.domain.runs.recovery import kept, recoverable, reusable
from statelog.domain.runs.request import checked
from statelog.domain.runs.run import RUN, Run, fail
from statelog.domain.workflows.shape import show
from tests.domain.runs.bundles import (
    LOCAL,
    SIMULATOR,
    activity,
    bundle,
    diamond,
    golden,
    place,
    request,
    resource,
)
from tests.domain.runs.stories import BEGUN, completed, told


def test_a_request_is_read_and_written_the_same():
    """So a job's payload is the request, to the last field."""
    asked = request(diamond())
    assert request(show(asked)) == asked


def test_what_only_a_run_can_say_is_taken_and_ignored():
    """P4: a client that sends a run back is not refused."""
    theirs = {"status": "completed", "makespanSeconds": 1, "cost": 2, "failureReason": "x"}
    begun = admitted(checked(request(golden(run=theirs))), at=0.0)
    assert begun == admitted(request(golden()), at=0.0)


def test_an_unknown_field_is_not_taken():
    with pytest.raises(Malformed) as caught:
        request(golden(run={"speed": 3}))
    assert caught.value.field == "run.speed"


WRONG = [
    ({"run": {"id": ""}}, "run.id", "must not be empty"),
    ({"plan": {"id": ""}}, "plan.id", "must not be empty"),
    ({"run": {"mode": "fast"}}, "run.mode", "must be one of simulation, real, not 'fast'"),
    ({"run": {"mode": ""}}, "run.mode", "must be one of simulation, real, not ''"),
    ({"run": {"mode": "interactive"}}, "run.mode", "interactive: not built"),
    ({"run": {"kind": "standalone"}}, "run.kind", "standalone: not built"),
]


@pytest.mark.parametrize(("given", "field", "why"), WRONG)
def test_what_is_not_accepted(given: dict[str, Any], field: str, why: str):
    """An empty run id (P10), an unknown mode, and what is not built (P19)."""
    with pytest.raises(Invalid) as caught:
        checked(request(golden(**given)))
    assert (caught.value.field, caught.value.why) == (field, why)


def test_materialization_and_cloud_capacity_are_not_built():
    """P19: said by name."""
    document = {**golden(), "preparationRequirementsByActivity": {"prepare": {}}}
    with pytest.raises(Invalid, match="materialization: not built"):
        checked(request(document))
    with pytest.raises(Invalid, match="cloud capacity: not built"):
        checked(request({**golden(), "runtimeAllocations": {"prepare": {}}}))
    actions = {"lifecycleActions": [{"id": "x", "action": "provision"}]}
    with pytest.raises(Invalid, match="cloud capacity: not built"):
        checked(request(golden(run={"mode": "real"}, plan=actions)))
    assert checked(request(golden(plan=actions))).plan.lifecycle_actions


def begun(document: dict[str, Any]) -> Started:
    return admitted(request(document), at=0.0)


def test_a_run_takes_what_it_needs():
    """In an order in which it can run, with prices, runtimes and what was promised."""
    document = golden(plan={"predicted": {"makespanSeconds": 20, "cost": 0.02}, "budget": 1})
    started = begun(document)
    assert [each.activity_id for each in started.activities] == ["prepare", "analyze", "summarize"]
    analyze = started.activities[1]
    assert (analyze.predecessors, analyze.runtime_id) == (("prepare",), "sim")
    assert (analyze.price_per_second, analyze.name) == (0.001, "Analyze")
    promised = (started.predicted_makespan_seconds, started.predicted_cost, started.budget)
    assert promised == (20, 0.02, 1)


def test_a_data_dependency_is_a_predecessor():
    """planning case 62: also where no control edge is (P13)."""
    assert begun(golden(edges=[])).activities[1].predecessors == ("prepare",)


def test_each_activity_needs_one_assignment():
    """planning case 54: fewer, unknown or twice, and no run begins."""
    with pytest.raises(Invalid, match="are 2 for 3 activities"):
        begun(golden(places=[place("prepare", "simulated-edge"), place("analyze", "x")]))
    three = [place("prepare", "simulated-edge"), place("analyze", "simulated-edge")]
    with pytest.raises(Invalid, match="no activity 'z'"):
        begun(golden(places=[*three, place("z", "simulated-edge")]))
    with pytest.raises(Invalid, match="assigned twice"):
        begun(golden(places=[*three, place("analyze", "simulated-edge")]))


def one(*runtimes: dict[str, Any], mode: str = "simulation", **given: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "run": {"mode": mode},
        "resources": [resource("m")],
        "activities": [activity("a", 1)],
        "places": [place("a", "m")],
        "runtimes": runtimes,
        **given,
    }
    return bundle(**made)


def test_the_first_enabled_runtime_of_the_mode_runs_it():
    """4.1: simulation needs a simulator, real what executes."""
    other = {**SIMULATOR, "id": "other"}
    assert begun(one(LOCAL, SIMULATOR, other)).activities[0].runtime_id == "sim"
    assert begun(one(SIMULATOR, LOCAL, mode="real")).activities[0].runtime_id == "local"
    off = one(SIMULATOR, other)
    off["runtimeBindings"][0]["enabled"] = False
    assert begun(off).activities[0].runtime_id == "other"


def test_the_assignment_may_name_its_runtime():
    other = {**SIMULATOR, "id": "other"}
    named = [place("a", "m", metadata={"runtimeId": "other"})]
    assert begun(one(SIMULATOR, other, places=named)).activities[0].runtime_id == "other"
    with pytest.raises(Invalid, match="no enabled runtime called 'other'"):
        begun(one(SIMULATOR, places=named))


def test_without_a_runtime_of_the_mode_no_run_begins():
    """4.1: the request is invalid."""
    with pytest.raises(Invalid, match="no enabled runtime of mode execution"):
        begun(one(SIMULATOR, mode="real"))
    with pytest.raises(Invalid, match="no enabled runtime of mode simulation"):
        begun(one(LOCAL))
    slurm = {**LOCAL, "driver": "slurm"}
    with pytest.raises(Invalid, match="driver slurm of 'local': not built"):
        begun(one(slurm, mode="real"))


def test_what_is_only_simulated_is_not_run():
    """planning case 66: and nothing is called for it."""
    only = [activity("a", 1, capabilities=["simulation"])]
    with pytest.raises(Invalid, match="'a' is for simulation only, not real"):
        begun(one(LOCAL, mode="real", activities=only))
    assert begun(one(SIMULATOR, activities=only)).mode == "simulation"


FAILED_RUN = RUN.fold(
    told(*completed("a"), *completed("b", 120.0), (fail, {"reason": "x", "at": 9.0}))
)


def test_only_a_failed_run_is_recovered():
    recoverable("r1", FAILED_RUN)
    for run in (Run(), RUN.fold(told())):
        with pytest.raises(Refused) as caught:
            recoverable("r1", run)
        assert caught.value.rule == "recoverable"


def test_only_what_completed_is_kept():
    """2.8: each once, in the order of the run."""
    assert reusable(FAILED_RUN, ["b", "a", "b"], "f") == ("b", "a")
    with pytest.raises(Invalid, match=r"f\[1\]: activity 'c' is cancelled there"):
        reusable(FAILED_RUN, ["a", "c"], "f")
    with pytest.raises(Invalid, match=r"f\[0\]: the run has no activity 'z'"):
        reusable(FAILED_RUN, ["z"], "f")


def test_what_is_kept_has_its_allocation():
    """planning case 76."""
    assert kept("r1", FAILED_RUN, ("a",)) == (TaskKept("a", "r1", "m", "local", 100.0, 110.0),)
    assert [each.activity_id for each in kept("r1", FAILED_RUN, ("b", "a"))] == ["a", "b"]


def test_a_producer_without_its_workspace_is_run_again():
    """2.8: if something that is not kept needs it, and so on; what nobody needs stays kept."""

    def left(ids: str, gone: str) -> str:
        return "".join(each.activity_id for each in kept("r1", FAILED_RUN, ids, gone=gone))

    assert (left("ab", "a"), left("ab", "b"), left("ab", "")) == ("b", "ab", "ab")


def test_what_is_run_again_needs_what_was_before_it():
    """2.8: the fixpoint; `c` runs again, so does `b` whose workspace is gone, and so `a`."""
    chain = RUN.fold(
        told(
            *completed("a"),
            *completed("b", 120.0),
            (fail, {"reason": "x", "at": 9.0}),
            begun=replace(
                BEGUN,
                activities=(
                    Placed("a", "m"),
                    Placed("b", "m", predecessors=("a",)),
                    Placed("c", "m", predecessors=("b",)),
                ),
            ),
        )
    )
    assert kept("r1", chain, "ab", gone="ab") == ()
    assert [each.activity_id for each in kept("r1", chain, "ab", gone="a")] == ["a", "b"]
