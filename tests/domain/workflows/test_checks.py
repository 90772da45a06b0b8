"""What may be registered, and by which field the rest is refused (1.13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from statelog.domain.errors import Invalid, Malformed
from statelog.domain.workflows.checks import (
    check_environment,
    check_scope,
    check_topology,
    check_workflow,
)
from statelog.domain.workflows.environments import embedded_environments, read_environment
from tests.domain.workflows import bundle

KNOWN = {"lab-v1": ["a", "b"], "other-v1": ["c"], "twin-v1": ["b"]}


def checked_scope(record: Any) -> None:
    check_scope(record, KNOWN)


def checked_topology(record: Any) -> None:
    check_topology(record, ["s"])


LINK = bundle.TOPOLOGY["links"][0]
FIRST, SECOND, THIRD = bundle.WORKFLOW["activities"]


def link(**changes: Any) -> dict[str, Any]:
    return {"links": [{**LINK, **changes}]}


def first(**changes: Any) -> dict[str, Any]:
    return {"activities": [{**FIRST, **changes}, SECOND, THIRD]}


def edge(later: str, earlier: str) -> dict[str, Any]:
    return {"dependencies": [{"activityId": later, "dependsOnActivityId": earlier}]}


def test_a_good_bundle_passes() -> None:
    """Every definition of the sample may be registered."""
    check_environment(bundle.environment())
    checked_scope(bundle.scope())
    checked_scope(bundle.scope(environmentVersionIds=["lab-v1", "other-v1"]))
    checked_topology(bundle.topology())
    check_workflow(bundle.workflow())


@pytest.mark.parametrize(
    ("make", "check", "changes", "at", "why"),
    [
        (bundle.workflow, check_workflow, {"id": ""}, "id", "must not be empty"),
        (bundle.workflow, check_workflow, {"id": "w" * 256}, "id", "more than 255"),
        (bundle.workflow, check_workflow, {"version": 0}, "version", "1 or more"),
        (bundle.workflow, check_workflow, {"activities": []}, "activities", "not be empty"),
        (bundle.workflow, check_workflow, first(id="second"), "activities[1].id", "given twice"),
        (bundle.workflow, check_workflow, first(kind="job"), "activities[0].kind", "not one of"),
        (
            bundle.workflow,
            check_workflow,
            first(capabilities=["real", "magic"]),
            "activities[0].capabilities[1]",
            "not one of",
        ),
        (
            bundle.workflow,
            check_workflow,
            first(workflowVersionId="x"),
            "activities[0].workflowVersionId",
            "part of 'w-v1'",
        ),
        (
            bundle.workflow,
            check_workflow,
            first(simulation={"durationSeconds": -1}),
            "activities[0].simulation.durationSeconds",
            "0 or more",
        ),
        (
            bundle.workflow,
            check_workflow,
            first(resources={"memoryBytes": -1}),
            "activities[0].resources.memoryBytes",
            "0 or more",
        ),
        (
            bundle.workflow,
            check_workflow,
            {"dataDependencies": [{**bundle.WORKFLOW["dataDependencies"][0], "sizeBytes": 0}]},
            "dataDependencies[0].sizeBytes",
            "1 or more",
        ),
        (
            bundle.workflow,
            check_workflow,
            edge("second", "nobody"),
            "dependencies[0].dependsOnActivityId",
            "no activity 'nobody'",
        ),
        (bundle.workflow, check_workflow, edge("first", "third"), "dependencies", "cycle"),
        (bundle.workflow, check_workflow, edge("first", "first"), "dependencies", "cycle"),
        (bundle.environment, check_environment, {"version": {}}, "version.id", "not be empty"),
        (
            bundle.environment,
            check_environment,
            {"resources": [{"id": "a"}, {"id": "a"}]},
            "resources[1].id",
            "'a' is there twice",
        ),
        (
            bundle.environment,
            check_environment,
            {"resources": [{"id": "a", "environmentVersionId": "x"}]},
            "resources[0].environmentVersionId",
            "part of 'lab-v1'",
        ),
        (
            bundle.environment,
            check_environment,
            {"resources": [{"id": "a", "type": "toaster"}]},
            "resources[0].type",
            "not one of",
        ),
        (
            bundle.environment,
            check_environment,
            {"runtimes": [{"id": "sim", "driver": "ssh", "mode": "fast"}]},
            "runtimes[0].mode",
            "not one of execution, simulation",
        ),
        (
            bundle.environment,
            check_environment,
            {"resourceRuntimeBindings": [{"resourceId": "x", "runtimeId": "sim"}]},
            "resourceRuntimeBindings[0].resourceId",
            "no resource 'x'",
        ),
        (
            bundle.environment,
            check_environment,
            {"resourceRuntimeBindings": [{"resourceId": "a", "runtimeId": "x"}]},
            "resourceRuntimeBindings[0].runtimeId",
            "no runtime 'x'",
        ),
        (
            bundle.environment,
            check_environment,
            {"activityResourceProfiles": [{"activityTypeId": "t", "resourceId": "a"}] * 2},
            "activityResourceProfiles[1].resourceId",
            "there twice",
        ),
        (
            bundle.scope,
            checked_scope,
            {"environmentVersionIds": []},
            *("environmentVersionIds", ""),
        ),
        (
            bundle.scope,
            checked_scope,
            {"environmentVersionIds": ["lab-v1", "lab-v1"]},
            "environmentVersionIds[1]",
            "there twice",
        ),
        (
            bundle.scope,
            checked_scope,
            {"environmentVersionIds": ["lab-v1", "x"]},
            "environmentVersionIds[1]",
            "no environment version 'x'",
        ),
        (
            bundle.scope,
            checked_scope,
            {"environmentVersionIds": ["lab-v1", "twin-v1"]},
            "environmentVersionIds[1]",
            "has a resource 'b', as 'lab-v1' has",
        ),
        (
            bundle.topology,
            checked_topology,
            {"executionScopeId": "x"},
            "executionScopeId",
            "no execution scope 'x'",
        ),
        (bundle.topology, checked_topology, {"version": 0}, "version", "1 or more"),
        (
            bundle.topology,
            checked_topology,
            link(targetResourceId="a"),
            "links[0].targetResourceId",
            "comes from",
        ),
        (
            bundle.topology,
            checked_topology,
            link(bandwidthBitsPerSecond=0),
            "links[0].bandwidthBitsPerSecond",
            "above 0",
        ),
        (
            bundle.topology,
            checked_topology,
            link(latencySeconds=-0.1),
            "links[0].latencySeconds",
            "0 or more",
        ),
        (
            bundle.topology,
            checked_topology,
            {"links": [LINK, {**LINK, "id": "again"}]},
            "links[1].targetResourceId",
            "'a' and 'b' is there twice",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused_by_its_field(
    make: Callable[..., Any], check: Callable[[Any], None], changes: Any, at: str, why: str
) -> None:
    """The field is named with its index; none of these is a matter of shape."""
    with pytest.raises(Invalid) as refused:
        check(make(**changes))
    assert refused.value.field == at
    assert why in refused.value.why
    assert not isinstance(refused.value, Malformed)


def test_a_bundle_is_known_by_its_version() -> None:
    """The version's id is the environment's; it may be said again, and no other may."""
    assert bundle.environment().id == "lab-v1"
    assert bundle.environment(id="lab-v1") == bundle.environment()
    with pytest.raises(Invalid, match=r"e\.id: is not version\.id"):
        read_environment({**bundle.ENVIRONMENT, "id": "x"}, "e")
    for wrong in ([], None, {"version": []}, {"version": {"id": 3}}, {"nodes": []}):
        with pytest.raises(Malformed):
            read_environment(wrong)


def test_pieces_of_environments_are_put_together() -> None:
    """Resources and runtimes name their environment version; bindings and profiles follow them."""
    whole = bundle.environment()
    resources = [r for r in whole.resources]
    from statelog.domain.workflows.complete import completed

    owned = completed(whole)
    (made,) = embedded_environments(
        owned.resources,
        owned.runtimes,
        whole.resource_runtime_bindings,
        whole.activity_resource_profiles,
    )
    assert (made.id, made.version) == ("lab-v1", {"id": "lab-v1"})
    assert [r.id for r in made.resources] == [r.id for r in resources]
    assert made.resource_runtime_bindings == whole.resource_runtime_bindings
    assert [p.resource_id for p in made.activity_resource_profiles] == ["a"]
    assert embedded_environments(()) == ()
