"""What a definition leaves open because it follows from the rest: owners' ids, and its hash."""

from __future__ import annotations

import json
from functools import singledispatch
from hashlib import sha256
from typing import Any, TypeVar, cast

from statelog.domain.aggregate import changed
from statelog.domain.workflows.resources import EnvironmentVersion, Topology
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.shape import show
from statelog.domain.workflows.workflow import WorkflowVersion

T = TypeVar("T")


def completed(record: T) -> T:
    """The record with the ids of owners filled in; of a workflow also its hash, which is ours."""
    return cast("T", _completed(record))


@singledispatch
def _completed(record: Any) -> Any:
    return record


@_completed.register
def _(environment: EnvironmentVersion) -> EnvironmentVersion:
    return changed(
        environment,
        resources=_owned(environment.resources, "environment_version_id", environment.id),
        runtimes=_owned(environment.runtimes, "environment_version_id", environment.id),
    )


@_completed.register
def _(topology: Topology) -> Topology:
    return changed(topology, links=_owned(topology.links, "topology_id", topology.id))


@_completed.register
def _(workflow: WorkflowVersion) -> WorkflowVersion:
    activities = _owned(workflow.activities, "workflow_version_id", workflow.id)
    owned = changed(workflow, activities=activities, definition_hash="")
    return changed(owned, definition_hash=definition_hash(owned))


@_completed.register
def _(plan: SchedulePlan) -> SchedulePlan:
    return changed(
        plan,
        assignments=tuple(
            changed(each, plan_id=plan.id, id=each.id or f"{plan.id}-{each.activity_id}")
            for each in plan.assignments
        ),
        lifecycle_actions=_owned(plan.lifecycle_actions, "schedule_plan_id", plan.id),
    )


def _owned(parts: tuple[T, ...], name: str, owner: str) -> tuple[T, ...]:
    return tuple(changed(part, **{name: owner}) for part in parts)


def definition_hash(workflow: WorkflowVersion) -> str:
    """SHA-256 (hex) of a workflow's document without its hash, keys sorted and no spaces (P10)."""
    document = {**show(workflow), "definitionHash": ""}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()
