"""A small environment, scope, topology, workflow and plan that fit each other."""

from __future__ import annotations

from typing import Any

from statelog.domain.workflows.environments import read_environment
from statelog.domain.workflows.resources import EnvironmentVersion, Scope, Topology
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.shape import read
from statelog.domain.workflows.workflow import WorkflowVersion

ENVIRONMENT: dict[str, Any] = {
    "environment": {"id": "lab", "name": "Lab"},
    "version": {"id": "lab-v1", "environmentId": "lab", "version": 1},
    "runtimes": [{"id": "sim", "driver": "simgrid", "mode": "simulation"}],
    "resources": [
        {"id": "a", "cpuCores": 2, "cpuCapacity": 2, "computeSpeedup": 1, "schedulable": True},
        {"id": "b", "type": "cloud_vm", "computeSpeedup": 2, "schedulable": True},
    ],
    "storages": [{}],
    "activityResourceProfiles": [
        {"activityTypeId": "t", "resourceId": "a", "runtimeSeconds": 3},
        {"activityTypeId": "t", "resourceId": "elsewhere"},
    ],
    "resourceRuntimeBindings": [{"resourceId": "a", "runtimeId": "sim", "enabled": True}],
}
SCOPE: dict[str, Any] = {"id": "s", "name": "Scope", "environmentVersionIds": ["lab-v1"]}
TOPOLOGY: dict[str, Any] = {
    "id": "n",
    "executionScopeId": "s",
    "links": [
        {
            "id": "ab",
            "sourceResourceId": "a",
            "targetResourceId": "b",
            "bandwidthBitsPerSecond": 1e8,
            "bidirectional": True,
        }
    ],
}
WORKFLOW: dict[str, Any] = {
    "id": "w-v1",
    "workflowId": "w",
    "definitionHash": "theirs",
    "activities": [
        {"id": "first", "name": "First", "simulation": {"durationSeconds": 6}},
        {"id": "second", "capabilities": ["simulation"], "simulation": {"durationSeconds": 2}},
        {"id": "third"},
    ],
    "dependencies": [{"activityId": "second", "dependsOnActivityId": "first"}],
    "dataDependencies": [
        {
            "producerActivityId": "first",
            "consumerActivityId": "third",
            "logicalName": "x",
            "sizeBytes": 10,
        }
    ],
}
PLAN: dict[str, Any] = {
    "id": "p",
    "workflowVersionId": "w-v1",
    "executionScopeId": "s",
    "networkTopologyId": "n",
    "source": "imported",
    "predicted": {"makespanSeconds": 9},
    "assignments": [
        {"activityId": "first", "resourceId": "a", "orderOnResource": 0},
        {"activityId": "second", "resourceId": "a", "orderOnResource": 1},
        {"activityId": "third", "resourceId": "b", "orderOnResource": 0},
    ],
}


def environment(**changes: Any) -> EnvironmentVersion:
    """The environment with other values for some keys."""
    return read_environment({**ENVIRONMENT, **changes})


def scope(**changes: Any) -> Scope:
    """The scope with other values for some keys."""
    return read(Scope, {**SCOPE, **changes})


def topology(**changes: Any) -> Topology:
    """The topology with other values for some keys."""
    return read(Topology, {**TOPOLOGY, **changes})


def workflow(**changes: Any) -> WorkflowVersion:
    """The workflow with other values for some keys."""
    return read(WorkflowVersion, {**WORKFLOW, **changes})


def plan(**changes: Any) -> SchedulePlan:
    """The plan with other values for some keys."""
    return read(SchedulePlan, {**PLAN, **changes})
