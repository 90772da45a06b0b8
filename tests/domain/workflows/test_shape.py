"""Documents in camelCase become records, and whatever does not fit is refused by its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid, Malformed
from statelog.domain.workflows.resources import Profile, Resource, Topology
from statelog.domain.workflows.schedule_plan import Assignment, Predicted, SchedulePlan
from statelog.domain.workflows.shape import DEPTH_LIMIT, camel, read, show
from statelog.domain.workflows.workflow import Activity, Command, Simulation, WorkflowVersion

PLAN = {
    "id": "p",
    "workflowVersionId": "w-v1",
    "executionScopeId": "s",
    "source": "imported",
    "deadlineSeconds": 25,
    "predicted": {"makespanSeconds": 23.1, "feasible": True},
    "assignments": [
        {"activityId": "a", "resourceId": "r", "orderOnResource": 1, "metadata": {"x": [1, None]}}
    ],
}


def test_a_document_becomes_the_record_it_describes() -> None:
    """Every level is read, numbers as numbers of seconds, lists as tuples."""
    plan = read(SchedulePlan, PLAN)
    assert plan == SchedulePlan(
        "p",
        "w-v1",
        "s",
        source="imported",
        deadline_seconds=25.0,
        predicted=Predicted(23.1, 0.0, True),
        assignments=(Assignment("a", "r", order_on_resource=1, metadata={"x": [1, None]}),),
    )
    assert type(plan.deadline_seconds) is float


def test_a_record_is_shown_without_what_is_empty_and_with_what_is_zero() -> None:
    """None, empty text, lists and objects are left out; zero and false are values."""
    shown = show(Activity("a", command=Command(executable="cat", arguments=("x",))))
    assert shown["command"] == {"executable": "cat", "arguments": ["x"]}
    assert shown["resources"] == {"cpu": 0.0, "memoryBytes": 0, "storageBytes": 0, "gpu": 0}
    assert shown.keys().isdisjoint({"service", "simulation", "name", "capabilities", "metadata"})
    assert show(Resource("r"))["schedulable"] is False


def test_what_is_empty_inside_free_objects_is_kept() -> None:
    """Metadata is stored as it was given."""
    free = {"a": {}, "b": [], "c": "", "d": None, "e": [{}, []]}
    assert show(Activity("a", metadata=free))["metadata"] == free


@dataclass(frozen=True)
class Shelf:
    """A record with every kind of field."""

    id: str
    count: int = 0
    weight: float = 0.0
    open: bool = False
    tags: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    free: dict[str, Any] = field(default_factory=dict)
    inner: Predicted | None = None


_TEXT = st.text(max_size=5)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=5,
)
_REAL = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60)
@given(
    st.builds(
        Shelf,
        id=_TEXT,
        count=st.integers(-(2**63), 2**64 - 1),
        weight=_REAL,
        open=st.booleans(),
        tags=st.lists(_TEXT, max_size=2).map(tuple),
        labels=st.dictionaries(_TEXT, _TEXT, max_size=2),
        free=st.dictionaries(_TEXT, _JSON, max_size=2),
        inner=st.none() | st.builds(Predicted, _REAL, _REAL, st.booleans()),
    ).filter(lambda shelf: shelf.id)
)
def test_what_is_shown_is_read_back_as_it_was(shelf: Shelf) -> None:
    """Writing and reading are each other's inverse."""
    assert read(Shelf, show(shelf)) == shelf


@pytest.mark.parametrize(
    ("change", "at", "why"),
    [
        ({"rank": 1}, "rank", "is not a known field"),
        ({"workflow_version_id": "w"}, "workflow_version_id", "is not a known field"),
        ({"id": None}, "id", "must be text, not null"),
        ({"id": 7}, "id", "must be text, not an integer"),
        ({"id": "\ud800"}, "id", "has a lone surrogate at character 0"),
        ({"budget": "1"}, "budget", "must be a number, not text"),
        ({"budget": True}, "budget", "must be a number, not a boolean"),
        ({"budget": float("nan")}, "budget", "is nan, which JSON cannot hold"),
        ({"budget": float("-inf")}, "budget", "is -inf, which JSON cannot hold"),
        ({"budget": 2**64}, "budget", "is an integer beyond 64 bits"),
        ({"predicted": []}, "predicted", "must be an object, not a list"),
        ({"predicted": {"cost": None}}, "predicted.cost", "must be a number, not null"),
        ({"predicted": {"feasible": 1}}, "predicted.feasible", "must be a boolean, not an integer"),
        ({"assignments": {}}, "assignments", "must be a list, not an object"),
        ({"assignments": [{"activityId": "a"}]}, "assignments[0].resourceId", "is missing"),
        (
            {"assignments": [PLAN["assignments"][0], {"orderOnResource": 1.0}]},  # type: ignore[index]
            "assignments[1].orderOnResource",
            "must be an integer, not a number",
        ),
        (
            {"lifecycleActions": [{"id": "l", "dependsOn": ["x", 3]}]},
            "lifecycleActions[0].dependsOn[1]",
            "must be text, not an integer",
        ),
        ({"metadata": {"a": [0, 2**70]}}, "metadata.a[1]", "is an integer beyond 64 bits"),
        ({"metadata": {"a\ud800": 1}}, "metadata.a\\ud800", "has a lone surrogate at character 1"),
        ({"metadata": {"a": float("inf")}}, "metadata.a", "is inf, which JSON cannot hold"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_by_its_place(
    change: dict[str, Any], at: str, why: str
) -> None:
    """The field is named with its path below `where`; the error is an `Invalid` of its own kind."""
    with pytest.raises(Malformed) as refused:
        read(SchedulePlan, {**PLAN, **change}, "plan")
    assert (refused.value.field, refused.value.why) == (f"plan.{at}", why)
    assert isinstance(refused.value, Invalid)


@pytest.mark.parametrize("document", [None, [], "x", 1, True])
def test_what_is_no_object_is_no_record(document: Any) -> None:
    """The place is where the document was to stand."""
    with pytest.raises(Malformed, match="plan: must be an object"):
        read(SchedulePlan, document, "plan")


def test_a_list_of_records_is_read_as_one() -> None:
    """The items of a list that stands alone are named by their index."""
    assert read(tuple[Profile, ...], [], "profiles") == ()
    with pytest.raises(Malformed, match=r"profiles\[1\]\.resourceId: is missing"):
        read(
            tuple[Profile, ...],
            [{"activityTypeId": "t", "resourceId": "r"}, {"activityTypeId": "t"}],
            "profiles",
        )


def test_optional_records_may_be_null() -> None:
    """A field that may be None takes null, and no other does."""
    assert read(Activity, {"id": "a", "simulation": None}).simulation is None
    simulated = read(Activity, {"id": "a", "simulation": {"durationSeconds": 3}})
    assert simulated.simulation == Simulation(duration_seconds=3.0)


def test_deep_nesting_is_refused_before_it_exhausts_anything() -> None:
    """A free object of thousands of levels is one clear error."""
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Malformed, match="is nested too deeply") as refused:
        read(Topology, {"id": "t", "metadata": {"deep": deep}})
    assert refused.value.field.count("[0]") == DEPTH_LIMIT


def test_what_a_message_repeats_of_a_key_is_short_and_printable() -> None:
    """Keys come from outside: a long one is cut."""
    with pytest.raises(Malformed) as refused:
        read(WorkflowVersion, {"id": "w", "k" * 10_000: 1})
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("id", "id"),
        ("predicted_start_at", "predictedStartAt"),
        ("runtime_std_dev_seconds", "runtimeStdDevSeconds"),
    ],
)
def test_names_are_written_in_camel_case(name: str, shown: str) -> None:
    """The JSON name is the field's name with capitals for underscores."""
    assert camel(name) == shown
