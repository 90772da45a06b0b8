"""Definitions are registered once, checked against each other, and read back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Conflict, Invalid, NotFound, Refused
from statelog.domain.workflows.complete import completed, definition_hash
from statelog.domain.workflows.definitions import SCOPE, ScopeStatus, register
from statelog.domain.workflows.resources import Resource
from statelog.domain.workflows.shape import show
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.infrastructure.workflows.definitions import Definitions
from statelog.infrastructure.workflows.listing import all_resources, newest_first
from statelog.projections.workflows import WORKFLOW_VIEWS
from tests.domain.workflows import bundle


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    tmp_path.chmod(0o700)
    with Journal(tmp_path / "s.db") as journal:
        yield journal


@pytest.fixture
def definitions(journal: Journal) -> Definitions:
    return Definitions(journal)


def fill(definitions: Definitions, *, plan: bool = True) -> None:
    """Register the whole sample in one commit."""
    records = [bundle.environment(), bundle.scope(), bundle.topology(), bundle.workflow()]
    definitions.register(*records, *([bundle.plan()] if plan else []), actor="t")


def test_what_is_registered_is_read_back(definitions: Definitions) -> None:
    """Each record comes back with the owners' ids it left open, from a stream of its own (P18)."""
    fill(definitions)
    assert definitions.environment("lab-v1") == completed(bundle.environment())
    assert definitions.scope("s") == bundle.scope()
    assert definitions.topology("n") == completed(bundle.topology())
    assert definitions.workflow("w-v1") == completed(bundle.workflow())
    assert definitions.schedule_plan("p") == completed(bundle.plan())
    assert {each.stream: each.name for each in definitions.journal.read(upto=5)} == {
        "environment/lab-v1": "workflows.environment.registered",
        "scope/s": "workflows.scope.registered",
        "topology/n": "workflows.topology.registered",
        "workflow/w-v1": "workflows.workflow.registered",
        "schedule-plan/p": "workflows.schedule_plan.registered",
    }


def test_ids_that_are_left_open_are_those_of_the_owner(definitions: Definitions) -> None:
    """Parts know what they are part of."""
    fill(definitions)
    plan = definitions.schedule_plan("p")
    assert {(a.plan_id, a.id) for a in plan.assignments} == {
        ("p", f"p-{name}") for name in ("first", "second", "third")
    }
    assert {a.workflow_version_id for a in definitions.workflow("w-v1").activities} == {"w-v1"}
    assert {r.environment_version_id for r in definitions.environment("lab-v1").resources} == {
        "lab-v1"
    }


def test_the_hash_of_a_definition_is_ours(definitions: Definitions) -> None:
    """What was given as the hash does not matter, everything else does (P10)."""
    fill(definitions)
    registered = definitions.workflow("w-v1")
    assert registered.definition_hash == definition_hash(registered)
    assert len(registered.definition_hash) == 64
    renamed = completed(bundle.workflow(name="other"))
    assert renamed.definition_hash != registered.definition_hash
    assert completed(bundle.workflow(definitionHash="x")) == registered


@pytest.mark.parametrize("kind", ["environment", "scope", "topology", "workflow", "schedule_plan"])
def test_what_is_not_there_is_not_found(definitions: Definitions, kind: str) -> None:
    """By kind and id, also for an id that none can have."""
    for id in ("x", ""):
        with pytest.raises(NotFound, match=f"'{id}'"):
            getattr(definitions, kind)(id)


def test_the_same_again_is_nothing_new(definitions: Definitions) -> None:
    """A second registration of the same content appends nothing, the hash aside."""
    fill(definitions)
    head = definitions.journal.head()
    fill(definitions)
    assert not definitions.register(bundle.workflow(definitionHash="x"), actor="t")
    assert definitions.journal.head() == head


@pytest.mark.parametrize(
    "record",
    [
        bundle.environment(environment={"id": "lab", "name": "other"}),
        bundle.scope(name="other"),
        bundle.topology(links=[]),
        bundle.workflow(name="other"),
        bundle.plan(budget=1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_an_id_is_not_registered_with_other_content(definitions: Definitions, record: Any) -> None:
    """What is registered is immutable: another content under its id is refused and kept out."""
    fill(definitions)
    head = definitions.journal.head()
    with pytest.raises(Invalid, match=r"id: .* is registered with other content"):
        definitions.register(record, actor="t")
    assert definitions.journal.head() == head
    assert not definitions.journal.refusals()


FIRST, SECOND, THIRD = bundle.WORKFLOW["activities"]
DATA = bundle.WORKFLOW["dataDependencies"][0]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"activities": [FIRST, SECOND, {**THIRD, "id": "4th"}]}, "workflow.activities"),
        ({"activities": [FIRST, SECOND]}, "workflow.activities"),
        ({"dependencies": []}, "workflow.dependencies"),
        (
            {"dependencies": [{"activityId": "third", "dependsOnActivityId": "second"}]},
            "workflow.dependencies",
        ),
        ({"dataDependencies": [{**DATA, "sizeBytes": 11}]}, "workflow.dataDependencies"),
        (
            {"activities": [{**FIRST, "simulation": {"durationSeconds": 7}}, SECOND, THIRD]},
            "workflow.activities[0].simulation.durationSeconds",
        ),
        (
            {"activities": [FIRST, SECOND, {**THIRD, "metadata": {"baseRuntimeSeconds": 1}}]},
            "workflow.activities[2].simulation.durationSeconds",
        ),
    ],
)
def test_an_embedded_workflow_must_be_the_registered_one(
    definitions: Definitions, changes: dict[str, Any], field: str
) -> None:
    """Activity ids, edges, durations or sizes that differ are refused by their field (P10)."""
    fill(definitions)
    given = bundle.workflow(**changes)
    with pytest.raises(Invalid) as refused:
        definitions.registrations(given)
    assert refused.value.field == field


def test_an_embedded_workflow_may_differ_in_everything_else(definitions: Definitions) -> None:
    """Names, commands, priorities, versions; a data edge said as a control edge too (P10)."""
    fill(definitions)
    given = bundle.workflow(
        name="other",
        version=7,
        activities=[{**FIRST, "name": "x", "priority": 9}, SECOND, THIRD],
        dependencies=[
            *bundle.WORKFLOW["dependencies"],
            {"activityId": "third", "dependsOnActivityId": "first"},
        ],
        dataDependencies=[{**DATA, "sizeBytes": 4}, {**DATA, "sizeBytes": 6}],
    )
    (change,) = definitions.registrations(given)
    assert change.events == ()
    base = {**FIRST, "metadata": {"baseRuntimeSeconds": 6}}
    assert not definitions.registration(bundle.workflow(activities=[base, SECOND, THIRD])).events


def test_other_embedded_definitions_give_way(definitions: Definitions) -> None:
    """A registered environment, scope or topology wins over the one that came along (P10)."""
    fill(definitions)
    changes = definitions.registrations(
        bundle.environment(resources=[], resourceRuntimeBindings=[]),
        bundle.scope(name="other"),
        bundle.topology(links=[]),
    )
    assert [change.events for change in changes] == [(), (), ()]


def test_an_embedded_plan_must_place_alike(definitions: Definitions) -> None:
    """Other predictions are fine; another lane under the same id would be another plan."""
    fill(definitions)
    assert not definitions.registration(bundle.plan(predicted={"cost": 5})).events
    moved = [*bundle.PLAN["assignments"][:2], {"activityId": "third", "resourceId": "a"}]
    with pytest.raises(Invalid) as refused:
        definitions.registration(bundle.plan(assignments=moved))
    assert refused.value.field == "plan.assignments"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"workflowVersionId": "x"}, "workflowVersionId"),
        ({"executionScopeId": "x"}, "executionScopeId"),
        ({"networkTopologyId": "x"}, "networkTopologyId"),
        ({"assignments": bundle.PLAN["assignments"][:2]}, "assignments"),
    ],
)
def test_a_plan_is_validated_against_what_is_registered(
    definitions: Definitions, changes: dict[str, Any], field: str
) -> None:
    """Unknown records and what the validator refuses; nothing is stored (3.6)."""
    fill(definitions, plan=False)
    head = definitions.journal.head()
    with pytest.raises(Invalid) as refused:
        definitions.register(bundle.plan(**changes), actor="t")
    assert refused.value.field == field
    assert definitions.journal.head() == head


def test_records_that_come_together_may_refer_to_each_other(definitions: Definitions) -> None:
    """In any order, in one commit; alone, each is refused for what is missing."""
    for record in (bundle.scope(), bundle.topology(), bundle.plan()):
        with pytest.raises(Invalid, match="no "):
            definitions.register(record, actor="t")
    definitions.register(
        bundle.plan(),
        bundle.topology(),
        bundle.scope(),
        bundle.workflow(),
        bundle.environment(),
        actor="t",
    )
    assert definitions.schedule_plan("p").id == "p"


def test_one_id_is_not_given_twice(definitions: Definitions) -> None:
    """Two records of one kind and id in one commit would be two truths."""
    with pytest.raises(Invalid, match=r"workflow\.id: .* is given twice"):
        definitions.registrations(bundle.workflow(), bundle.workflow())


def test_a_scope_that_a_plan_refers_to_stays(definitions: Definitions) -> None:
    """Removing it is refused by rule and kept as evidence; before the plan it may go."""
    fill(definitions, plan=False)
    definitions.remove_scope("s", actor="t")
    with pytest.raises(NotFound):
        definitions.scope("s")
    with pytest.raises(NotFound):
        definitions.remove_scope("s", actor="t")
    definitions.register(bundle.scope(), bundle.plan(), actor="t")
    with pytest.raises(Refused) as refused:
        definitions.remove_scope("s", actor="t")
    assert refused.value.rule == "scope_used"
    assert [each.rule for each in definitions.journal.refusals()] == ["scope_used"]
    assert definitions.scope("s") == bundle.scope()


def test_a_scope_is_not_removed_under_a_plan_that_is_being_stored(
    definitions: Definitions,
) -> None:
    """Whoever is second conflicts: the plan's commit moves or guards its scope's stream."""
    fill(definitions, plan=False)
    changes = definitions.registrations(bundle.plan())
    definitions.remove_scope("s", actor="t")
    with pytest.raises(Conflict, match="scope/s"):
        definitions.journal.commit(*changes, actor="t")


def test_later_plans_guard_their_scope(definitions: Definitions) -> None:
    """Only the first plan says so in the scope's stream."""
    fill(definitions)
    definitions.register(bundle.plan(id="p2"), actor="t")
    loaded = definitions.journal.load(SCOPE, "s")
    assert (loaded.version, loaded.state.status) == (2, ScopeStatus.USED)


def test_a_resource_joins_its_environment(definitions: Definitions) -> None:
    """It is seen together with those of the bundle, and a plan may place work on it."""
    fill(definitions)
    added = Resource("c", "lab-v1", schedulable=True)
    definitions.register(added, actor="t")
    assert [r.id for r in definitions.environment("lab-v1").resources] == ["a", "b", "c"]
    assert definitions.environments(bundle.scope())[0].resources[-1] == added
    moved = [*bundle.PLAN["assignments"][:2], {"activityId": "third", "resourceId": "c"}]
    definitions.register(bundle.plan(id="p2", assignments=moved), actor="t")


@pytest.mark.parametrize(
    ("resource", "field"),
    [
        (Resource("c"), "environmentVersionId"),
        (Resource("c", "nowhere-v1"), "environmentVersionId"),
        (Resource("a", "lab-v1"), "id"),
        (Resource("", "lab-v1"), "id"),
        (Resource("c", "lab-v1", cpu_cores=-1), "cpuCores"),
    ],
)
def test_a_resource_without_a_place_is_refused(
    definitions: Definitions, resource: Resource, field: str
) -> None:
    """Its environment version is known and has no resource of that id."""
    fill(definitions)
    with pytest.raises(Invalid) as refused:
        definitions.register(resource, actor="t")
    assert refused.value.field == field


def test_a_registration_that_lost_a_race_is_decided_again(journal: Journal) -> None:
    """Two writers of the same id: the second finds it registered, and says nothing more."""
    definitions = Definitions(journal)
    plain = journal.commit

    def late(*changes: Any, **given: Any) -> Any:
        journal.commit = plain  # type: ignore[method-assign]
        definitions.register(bundle.workflow(), actor="other")
        return plain(*changes, **given)

    journal.commit = late  # type: ignore[method-assign]
    assert not definitions.register(bundle.workflow(), actor="t")
    assert [each.actor for each in journal.read()] == ["other"]


def test_lists_are_short_and_newest_first(definitions: Definitions, journal: Journal) -> None:
    """Lines have counts in place of what makes definitions large (planning case 34 for plans)."""
    fill(definitions)
    definitions.register(bundle.plan(id="p2"), bundle.scope(id="s0"), actor="t")
    definitions.register(Resource("c", "lab-v1"), actor="t")
    with Views(journal, WORKFLOW_VIEWS) as views:
        plans = newest_first(views, "schedule_plans")
        assert [(line["id"], line["assignmentCount"]) for line in plans] == [("p2", 3), ("p", 3)]
        assert plans[0].keys().isdisjoint({"assignments", "position"})
        assert [line["id"] for line in newest_first(views, "execution_scopes")] == ["s0", "s"]
        (workflow,) = newest_first(views, "workflow_versions")
        assert (workflow["activityCount"], workflow["dataDependencyCount"]) == (3, 1)
        (topology,) = newest_first(views, "network_topologies")
        assert (topology["linkCount"], "links" in topology) == (1, False)
        (environment,) = newest_first(views, "environments")
        assert (environment["resourceCount"], environment["profileCount"]) == (2, 2)
        assert [each["id"] for each in all_resources(views)] == ["c", "a", "b"]
        definitions.remove_scope("s0", actor="t")
        assert [line["id"] for line in newest_first(views, "execution_scopes")] == ["s"]
        assert views.verify() == []


def test_a_stored_definition_is_the_document_people_see(definitions: Definitions) -> None:
    """What the event holds is what HTTP shows: camelCase, without what is empty."""
    fill(definitions)
    (recorded,) = definitions.journal.history("workflow/w-v1")
    document = vars(recorded.event)["definition"]
    assert document == show(completed(bundle.workflow()))
    assert "metadata" not in document


def test_registering_decides_without_a_journal() -> None:
    """The decision alone: registered once, and the same again is said already."""
    from statelog.domain.workflows.definitions import WORKFLOW

    events, state = WORKFLOW.decide(WORKFLOW.blank, register, record=bundle.workflow())
    assert len(events) == 1
    assert WORKFLOW.decide(state, register, record=bundle.workflow())[0] == ()
