"""Portable workflows: a short document that people write, as a workflow version (section 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from statelog.domain.errors import Invalid, Malformed
from statelog.domain.workflows.checks import check_workflow
from statelog.domain.workflows.limits import cores, size
from statelog.domain.workflows.shape import read
from statelog.domain.workflows.workflow import (
    Activity,
    Command,
    DataDependency,
    Demand,
    Dependency,
    Policy,
    Simulation,
    WorkflowVersion,
)

TIMEOUT_SECONDS: Final = 3600.0
CPU: Final = "0.1"
MEMORY: Final = "16Mi"
SHELL: Final = "/bin/sh"

LEGACY: Final = frozenset(
    {
        *("storagePolicy", "storageClassName", "storageSize", "mountPath", "runtime", "schedule"),
        "nodeSelector",
    }
)
"""Keys of `spec` that are accepted and mean nothing."""

LEGACY_OF_ACTIVITIES: Final = LEGACY - {"mountPath", "runtime"}
"""Keys of an activity that are accepted and mean nothing."""


@dataclass(frozen=True)
class PortableActivity:
    """An activity as people write it."""

    name: str
    run: str = ""
    command: str = ""
    image: str = ""
    runtime: str = ""
    cpu_limit: Any = CPU
    memory_limit: Any = MEMORY
    depends_on: tuple[str, ...] = ()
    resource_selector: str = ""
    keep_disk: bool = False
    mount_path: str = ""
    expected_outputs: tuple[str, ...] = ()
    simulation: Simulation | None = None


@dataclass(frozen=True)
class PortableData:
    """Bytes from one activity, by its name, to another."""

    producer_activity: str
    consumer_activity: str
    logical_name: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class PortableSpec:
    """What the workflow is made of."""

    namespace: str
    image: str = ""
    activities: tuple[PortableActivity, ...] = ()
    data_dependencies: tuple[PortableData, ...] = ()


@dataclass(frozen=True)
class Portable:
    """The whole document."""

    name: str
    spec: PortableSpec = field()


class Imported(NamedTuple):
    """A workflow version, and what of its document was ignored."""

    workflow: WorkflowVersion
    warnings: tuple[str, ...] = ()


def read_portable(document: Any, where: str = "") -> Imported:
    """A portable document as version 1 of its workflow.

    Raises `Malformed` for a document of another shape, and `Invalid` naming the field for a name
    that is empty or given twice, also once normalised, an unknown predecessor, a cycle, and a limit
    or size that is none.
    """
    kept, warnings = _without_legacy(document, where)
    try:
        return Imported(_workflow(read(Portable, kept)), tuple(warnings))
    except Malformed as error:
        raise Malformed(_below(where, error.field), error.why) from None
    except Invalid as error:
        raise Invalid(_below(where, error.field), error.why) from None


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _without_legacy(document: Any, where: str) -> tuple[Any, list[str]]:
    """The document without keys that mean nothing any more, and a warning for each."""
    if type(document) is not dict or type(document.get("spec")) is not dict:
        return document, []
    spec = document["spec"]
    warnings: list[str] = []
    kept = _kept(spec, LEGACY, _below(where, "spec"), warnings)
    activities = kept.get("activities")
    if type(activities) is list:
        kept["activities"] = [
            _kept(each, LEGACY_OF_ACTIVITIES, _below(where, f"spec.activities[{at}]"), warnings)
            for at, each in enumerate(activities)
        ]
    return {**document, "spec": kept}, warnings


def _kept(entries: Any, legacy: frozenset[str], where: str, warnings: list[str]) -> Any:
    if type(entries) is not dict:
        return entries
    warnings += [f"{where}.{key}: is ignored" for key in entries if key in legacy]
    return {key: value for key, value in entries.items() if key not in legacy}


def _workflow(portable: Portable) -> WorkflowVersion:
    id, spec = _id(portable.name, "name"), portable.spec
    if not spec.namespace.strip():
        raise Invalid("spec.namespace", "must not be empty")
    if not spec.activities:
        raise Invalid("spec.activities", "must not be empty")
    ids = _ids(spec.activities)
    workflow = WorkflowVersion(
        f"{id}-v1",
        id,
        activities=tuple(
            _activity(each, at, ids[each.name], id, spec) for at, each in enumerate(spec.activities)
        ),
        dependencies=tuple(_dependencies(spec.activities, ids)),
        data_dependencies=tuple(_data(spec.data_dependencies, ids)),
        name=portable.name,
        namespace=spec.namespace,
        metadata={"image": spec.image} if spec.image else {},
    )
    try:
        check_workflow(workflow)
    except Invalid as error:
        raise Invalid(f"spec.{error.field}", error.why) from None
    return workflow


def normalised(name: str) -> str:
    """An id made of a name: lower case, anything but letter, digit or hyphen a hyphen, trimmed."""
    return re.sub(r"[^a-z0-9-]", "-", name.lower()).strip("-")


def _id(name: str, field: str) -> str:
    id = normalised(name)
    if not id:
        raise Invalid(field, f"{name!r} has no letter and no digit")
    return id


def _ids(activities: Iterable[PortableActivity]) -> dict[str, str]:
    """The id of each name."""
    ids: dict[str, str] = {}
    owners: dict[str, str] = {}
    for at, activity in enumerate(activities):
        where = f"spec.activities[{at}].name"
        id = _id(activity.name, where)
        if id in owners:
            other = owners[id]
            how = "" if other == activity.name else f", which is {id!r} as {other!r} is"
            raise Invalid(where, f"activity {activity.name!r} is there already{how}")
        ids[activity.name], owners[id] = id, activity.name
    return ids


def _activity(
    given: PortableActivity, at: int, id: str, workflow_id: str, spec: PortableSpec
) -> Activity:
    where = f"spec.activities[{at}]"
    return Activity(
        id=id,
        workflow_version_id=f"{workflow_id}-v1",
        activity_type_id=f"{workflow_id}-activity",
        external_id=given.name,
        name=given.name,
        capabilities=("real",) if given.simulation is None else ("simulation",),
        command=_command(given, where, spec.image),
        resources=Demand(
            cpu=cores(given.cpu_limit, f"{where}.cpuLimit"),
            memory_bytes=size(given.memory_limit, f"{where}.memoryLimit"),
        ),
        simulation=given.simulation,
        policy=Policy(timeout_seconds=TIMEOUT_SECONDS, max_attempts=1),
        priority=len(given.depends_on) + at,
        metadata=_metadata(given),
    )


def _command(given: PortableActivity, where: str, image: str) -> Command:
    """A line for the shell, in the image of the activity, else of the workflow."""
    if given.run and given.command:
        raise Invalid(f"{where}.command", f"activity {given.name!r} has `run` too")
    line = given.run or given.command
    if not line.strip():
        if given.simulation is None:
            raise Invalid(f"{where}.run", f"activity {given.name!r} has nothing to run")
        return Command(image=given.image or image)
    return Command(image=given.image or image, executable=SHELL, arguments=("-c", line))


def _metadata(given: PortableActivity) -> dict[str, Any]:
    known = {
        "runtime": given.runtime,
        "resourceSelector": given.resource_selector,
        "keepDisk": given.keep_disk,
        "mountPath": given.mount_path,
        "expectedOutputs": list(given.expected_outputs),
    }
    return {key: value for key, value in known.items() if value}


def _dependencies(
    activities: Iterable[PortableActivity], ids: Mapping[str, str]
) -> Iterable[Dependency]:
    for at, activity in enumerate(activities):
        for nth, name in enumerate(activity.depends_on):
            where = f"spec.activities[{at}].dependsOn[{nth}]"
            yield Dependency(
                ids[activity.name], _named(name, ids, where, f"{activity.name!r} depends on")
            )


def _data(entries: Iterable[PortableData], ids: Mapping[str, str]) -> Iterable[DataDependency]:
    for at, each in enumerate(entries):
        where = f"spec.dataDependencies[{at}]"
        producer = _named(each.producer_activity, ids, f"{where}.producerActivity", "there is no")
        consumer = _named(each.consumer_activity, ids, f"{where}.consumerActivity", "there is no")
        yield DataDependency(producer, consumer, each.logical_name, each.size_bytes)


def _named(name: str, ids: Mapping[str, str], where: str, how: str) -> str:
    """The id of an activity, by its name or its id."""
    if name in ids:
        return ids[name]
    if name in ids.values():
        return name
    raise Invalid(where, f"{how} activity {name!r}, which is not in the workflow")
