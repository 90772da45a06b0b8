"""Endpoints of definitions: environments, resources, scopes, topologies, workflows, plans (5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from statelog.domain.workflows import shape
from statelog.domain.workflows.definitions import Record
from statelog.domain.workflows.environments import embedded_environments, read_environment
from statelog.domain.workflows.portable import (
    LEGACY,
    LEGACY_OF_ACTIVITIES,
    Portable,
    PortableActivity,
    PortableSpec,
    read_portable,
)
from statelog.domain.workflows.portable_export import show_portable
from statelog.domain.workflows.resources import EnvironmentVersion, Resource, Scope, Topology
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.workflow import WorkflowVersion
from statelog.infrastructure.documents import yaml_of
from statelog.infrastructure.http import answers
from statelog.infrastructure.http.endpoint import YAML, Call, Endpoint, Services
from statelog.infrastructure.http.schema import Derived, ListOf, OneOf
from statelog.infrastructure.workflows.importing import import_document
from statelog.infrastructure.workflows.listing import all_resources, newest_first

Document = dict[str, Any]


@dataclass(frozen=True)
class PlanRequest:
    """A plan, with definitions that are registered with it unless their ids are."""

    plan: SchedulePlan
    workflow: WorkflowVersion | None = None
    resources: tuple[Resource, ...] = ()
    execution_scope: Scope | None = None
    network_topology: Topology | None = None


@dataclass(frozen=True)
class PlanImport:
    """A plan of definitions that are registered."""

    plan: SchedulePlan


ENVIRONMENT_BODY: Final = Derived(
    "EnvironmentBundle", EnvironmentVersion, optional=frozenset({"id"})
)
PORTABLE: Final = {
    PortableSpec: Derived("PortableSpec", PortableSpec, ignored=LEGACY),
    PortableActivity: Derived("PortableActivity", PortableActivity, ignored=LEGACY_OF_ACTIVITIES),
}


@dataclass(frozen=True)
class WfFormat:
    """A WfFormat 1.5 document: what tells it apart. Its reader looks at the rest."""

    schema_version: str


WFFORMAT_BODY: Final = Derived("WfFormat", WfFormat, open=True)


def _registered(services: Services, *records: Record, embedded: bool = False) -> None:
    services.definitions.register(*records, actor=services.actor, embedded=embedded)


def _post_environment(services: Services, call: Call) -> Document:
    record = read_environment(call.document)
    _registered(services, record)
    return shape.show(services.definitions.environment(record.id))


def _post_resource(services: Services, call: Call) -> Document:
    record = shape.read(Resource, call.document)
    _registered(services, record)
    owner = services.definitions.environment(record.environment_version_id)
    return shape.show(next(each for each in owner.resources if each.id == record.id))


def _post_scope(services: Services, call: Call) -> Document:
    record = shape.read(Scope, call.document)
    _registered(services, record)
    return shape.show(services.definitions.scope(record.id))


def _delete_scope(services: Services, call: Call) -> None:
    services.definitions.remove_scope(call.id("id"), actor=services.actor)


def _post_topology(services: Services, call: Call) -> Document:
    record = shape.read(Topology, call.document)
    _registered(services, record)
    return shape.show(services.definitions.topology(record.id))


def _post_workflow(services: Services, call: Call) -> Document:
    record = read_portable(call.document).workflow
    _registered(services, record)
    return shape.show(services.definitions.workflow(record.id))


def _import_workflow(services: Services, call: Call) -> Document:
    found = import_document(call.document, name=call.query.get("name"))
    new = services.definitions.register(*found.records, actor=services.actor)
    workflow = services.definitions.workflow(found.workflow.id)
    return {
        **found.ids,
        "format": found.form,
        "definitionHash": workflow.definition_hash,
        "activityCount": len(workflow.activities),
        "registered": new,
        "warnings": list(found.warnings),
    }


def _export_workflow(services: Services, call: Call) -> str:
    return yaml_of(show_portable(services.definitions.workflow(call.id("id"))))


def _post_plan(services: Services, call: Call) -> Document:
    asked = shape.read(PlanRequest, call.document)
    given = (asked.execution_scope, asked.network_topology, asked.workflow, asked.plan)
    records = (*embedded_environments(asked.resources), *(each for each in given if each))
    _registered(services, *records, embedded=True)
    return shape.show(services.definitions.schedule_plan(asked.plan.id))


def _import_plan(services: Services, call: Call) -> Document:
    asked = shape.read(PlanImport, call.document)
    _registered(services, replace(asked.plan, source="imported"), embedded=True)
    return shape.show(services.definitions.schedule_plan(asked.plan.id))


def _listed(view: str) -> Any:
    return lambda services, call: newest_first(services.views, view)


def _shown(kind: str) -> Any:
    return lambda services, call: shape.show(getattr(services.definitions, kind)(call.id("id")))


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/environments/",
        "listEnvironments",
        "Every environment version, newest first",
        _listed("environments"),
        answer=ListOf(answers.EnvironmentLine),
    ),
    Endpoint(
        "POST",
        "/environments/",
        "registerEnvironment",
        "Publish an environment version",
        _post_environment,
        201,
        EnvironmentVersion,
        ENVIRONMENT_BODY,
    ),
    Endpoint(
        "GET",
        "/resources/",
        "listResources",
        "Every resource of every environment version",
        lambda services, call: all_resources(services.views),
        answer=tuple[Resource, ...],
    ),
    Endpoint(
        "POST",
        "/resources/",
        "registerResource",
        "Add a resource to a published environment version",
        _post_resource,
        201,
        Resource,
        Resource,
    ),
    Endpoint(
        "GET",
        "/execution-scopes/",
        "listScopes",
        "Every execution scope, newest first",
        _listed("execution_scopes"),
        answer=ListOf(answers.ScopeLine),
    ),
    Endpoint(
        "POST",
        "/execution-scopes/",
        "registerScope",
        "Name the environment versions that planning and runs may use",
        _post_scope,
        201,
        Scope,
        Scope,
    ),
    Endpoint(
        "GET",
        "/execution-scopes/{id}/",
        "getScope",
        "One execution scope",
        _shown("scope"),
        answer=Scope,
        errors=(404,),
    ),
    Endpoint(
        "DELETE",
        "/execution-scopes/{id}/",
        "removeScope",
        "Remove a scope that no plan refers to",
        _delete_scope,
        204,
        errors=(404, 409),
    ),
    Endpoint(
        "GET",
        "/network-topologies/",
        "listTopologies",
        "Every network topology, newest first",
        _listed("network_topologies"),
        answer=ListOf(answers.TopologyLine),
    ),
    Endpoint(
        "POST",
        "/network-topologies/",
        "registerTopology",
        "Register the links of a scope",
        _post_topology,
        201,
        Topology,
        Topology,
    ),
    Endpoint(
        "GET",
        "/network-topologies/{id}/",
        "getTopology",
        "One network topology",
        _shown("topology"),
        answer=Topology,
        errors=(404,),
    ),
    Endpoint(
        "GET",
        "/workflow-definitions/",
        "listWorkflows",
        "Every workflow version, newest first",
        _listed("workflow_versions"),
        answer=ListOf(answers.WorkflowLine),
    ),
    Endpoint(
        "POST",
        "/workflow-definitions/",
        "registerWorkflow",
        "Register a portable workflow",
        _post_workflow,
        201,
        WorkflowVersion,
        Portable,
    ),
    Endpoint(
        "POST",
        "/workflow-definitions/import/",
        "importWorkflow",
        "Register a portable or WfFormat workflow, the latter with what it was measured on",
        _import_workflow,
        201,
        answers.ImportedWorkflow,
        OneOf(Portable, WFFORMAT_BODY),
        query={"name": str},
    ),
    Endpoint(
        "GET",
        "/workflow-definitions/{id}/",
        "getWorkflow",
        "One workflow version",
        _shown("workflow"),
        answer=WorkflowVersion,
        errors=(404,),
    ),
    Endpoint(
        "GET",
        "/workflow-definitions/{id}/export/",
        "exportWorkflow",
        "A workflow version as a portable workflow, which can be imported again",
        _export_workflow,
        answer=Portable,
        errors=(404,),
        media=YAML,
    ),
    Endpoint(
        "GET",
        "/schedule-plans/",
        "listPlans",
        "Every schedule plan, newest first, without assignments",
        _listed("schedule_plans"),
        answer=ListOf(answers.PlanLine),
    ),
    Endpoint(
        "POST",
        "/schedule-plans/",
        "storePlan",
        "Store a plan, and with it the definitions that are not registered yet",
        _post_plan,
        201,
        SchedulePlan,
        PlanRequest,
    ),
    Endpoint(
        "POST",
        "/schedule-plans/import/",
        "importPlan",
        "Store a plan of registered definitions; its source becomes imported",
        _import_plan,
        201,
        SchedulePlan,
        PlanImport,
    ),
    Endpoint(
        "GET",
        "/schedule-plans/{id}/",
        "getPlan",
        "One schedule plan with its assignments",
        _shown("schedule_plan"),
        answer=SchedulePlan,
        errors=(404,),
    ),
)
"""What is registered once and then referred to."""
