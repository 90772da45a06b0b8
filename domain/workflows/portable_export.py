"""A workflow version as the portable document it could have been imported from (section 6)."""

from __future__ import annotations

import shlex
from decimal import Decimal
from typing import Any

from statelog.domain.workflows.portable import (
    SHELL,
    Portable,
    PortableActivity,
    PortableData,
    PortableSpec,
    normalised,
)
from statelog.domain.workflows.shape import show
from statelog.domain.workflows.workflow import Activity, Command, WorkflowVersion


def show_portable(workflow: WorkflowVersion) -> dict[str, Any]:
    """A workflow version as a portable document, which reads back as the same graph.

    Names are those of the activities where they lead to their ids, else the ids. What the format
    has no word for is left out: types, priorities, policies, services, environment variables.
    """
    names = {each.id: _name(each) for each in workflow.activities}
    image = str(workflow.metadata.get("image", ""))
    before: dict[str, list[str]] = {}
    for edge in workflow.dependencies:
        before.setdefault(edge.activity_id, []).append(names[edge.depends_on_activity_id])
    spec = PortableSpec(
        workflow.namespace or "default",
        image,
        tuple(
            _shown(each, names[each.id], tuple(before.get(each.id, ())), image)
            for each in workflow.activities
        ),
        tuple(
            PortableData(
                names[each.producer_activity_id],
                names[each.consumer_activity_id],
                each.logical_name,
                each.size_bytes,
            )
            for each in workflow.data_dependencies
        ),
    )
    return show(Portable(workflow.name or workflow.workflow_id or workflow.id, spec))


def _name(activity: Activity) -> str:
    return activity.name if normalised(activity.name) == activity.id else activity.id


def _shown(activity: Activity, name: str, before: tuple[str, ...], image: str) -> PortableActivity:
    command, more = activity.command, activity.metadata
    outputs = more.get("expectedOutputs", ())
    return PortableActivity(
        name,
        run=_line(command),
        image="" if command.image == image else command.image,
        runtime=str(more.get("runtime", "")),
        cpu_limit=_number(activity.resources.cpu),
        memory_limit=str(activity.resources.memory_bytes),
        depends_on=before,
        resource_selector=str(more.get("resourceSelector", "")),
        keep_disk=more.get("keepDisk") is True,
        mount_path=str(more.get("mountPath", "")),
        expected_outputs=tuple(map(str, outputs)) if isinstance(outputs, list | tuple) else (),
        simulation=activity.simulation,
    )


def _line(command: Command) -> str:
    """What a shell would be given: the line it was imported from, or its words quoted."""
    if command.executable == SHELL and command.arguments[:1] == ("-c",):
        return "".join(command.arguments[1:2])
    words = (command.executable or command.entrypoint, *command.arguments)
    return shlex.join(filter(None, words))


def _number(cores: float) -> str:
    return format(Decimal(str(cores)), "f").removesuffix(".0")
