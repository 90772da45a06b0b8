"""Measured workflow executions in WfFormat 1.5 (WfCommons), as definitions to plan with (P20)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from statelog.domain.errors import Invalid
from statelog.domain.workflows.checks import check_workflow
from statelog.domain.workflows.durations import MEASURED, speedup
from statelog.domain.workflows.platform import Platform, environment_version
from statelog.domain.workflows.portable import normalised
from statelog.domain.workflows.resources import (
    EnvironmentVersion,
    Profile,
    Resource,
    Scope,
    Topology,
)
from statelog.domain.workflows.wfformat_file import SCHEMA, Execution, Machine, Task, Trace
from statelog.domain.workflows.workflow import (
    Activity,
    Command,
    DataDependency,
    Demand,
    Dependency,
    Simulation,
    WorkflowVersion,
)

Object = Mapping[str, Any]


class Instance(NamedTuple):
    """The definitions that a file stands for, ready to be registered together.

    `environment` is what to plan on; `measured` has the machines of the file, which are not
    scheduled, and the runtimes as profiles on every resource.
    """

    workflow: WorkflowVersion
    environment: EnvironmentVersion
    measured: EnvironmentVersion
    scope: Scope
    topology: Topology
    warnings: tuple[str, ...] = ()


def read_wfformat(document: Any, name: str, platform: Platform) -> Instance:
    """A WfFormat document as definitions named after `name`, to be planned on a platform.

    Keys it has no use for are ignored. Raises `Malformed` for a document of another shape, and
    `Invalid` naming the field for another schema version, a task that is given twice or nobody
    knows, a cycle, and what is negative.
    """
    trace = _Import(document)
    id = normalised(name)
    if not id:
        raise Invalid("name", f"{name!r} has no letter and no digit")
    workflow = trace.workflow(id, name)
    machines = trace.machines(id)
    resources = (*platform.environment.resources, *machines)
    measured = environment_version(
        f"{workflow.id}-on-{platform.environment.id}-measured",
        f"Measurements of {name}",
        machines,
        activity_resource_profiles=tuple(trace.profiles(id, resources)),
    )
    scope, topology = platform.ground(workflow.id, measured.id)
    return Instance(
        workflow, platform.environment, measured, scope, topology, tuple(trace.warnings())
    )


class _Import(Trace):
    """A file's parts as definitions."""

    def workflow(self, id: str, name: str) -> WorkflowVersion:
        """The tasks as activities, which can be simulated, and what orders them."""
        data = tuple(self._data())
        made = WorkflowVersion(
            f"{id}-v1",
            id,
            activities=tuple(self._activity(task, id) for task in self.tasks),
            dependencies=tuple(self._edges()),
            data_dependencies=data,
            name=name,
            namespace="wfcommons",
            metadata=self._metadata(),
        )
        try:
            check_workflow(made)
        except Invalid as error:
            raise Invalid(f"workflow.specification: {error.field}", error.why) from None
        return made

    def _activity(self, task: Task, workflow_id: str) -> Activity:
        run = self.executed.get(task.id, Execution(task.id))
        seconds = run.runtime_in_seconds
        return Activity(
            task.id,
            f"{workflow_id}-v1",
            type_id(workflow_id, task.id),
            task.id,
            task.name,
            capabilities=("simulation",),
            command=_command(run.command),
            resources=Demand(cpu=run.core_count, memory_bytes=int(run.memory_in_bytes)),
            simulation=None if seconds is None else Simulation(MEASURED, seconds),
            metadata={"machines": list(run.machines)} if run.machines else {},
        )

    def _edges(self) -> Iterator[Dependency]:
        """Parents and children say the same edges; each is kept once, in the order of tasks."""
        pairs = {(task.id, parent): None for task in self.tasks for parent in task.parents}
        pairs |= {(child, task.id): None for task in self.tasks for child in task.children}
        pairs |= {(consumer, producer): None for producer, consumer, _ in self._flows()}
        return (Dependency(after, before) for after, before in pairs)

    def _data(self) -> Iterator[DataDependency]:
        for producer, consumer, name in self._flows():
            if (size := self.files.get(name, 0)) > 0:
                yield DataDependency(producer, consumer, name, size)

    def _flows(self) -> Iterator[tuple[str, str, str]]:
        """Who writes what for whom; a file nobody writes is there from the start."""
        writers: dict[str, list[str]] = {}
        for task in self.tasks:
            for name in dict.fromkeys(task.output_files):
                writers.setdefault(name, []).append(task.id)
        for task in self.tasks:
            for name in dict.fromkeys(task.input_files):
                for writer in writers.get(name, ()):
                    if writer != task.id:
                        yield writer, task.id, name

    def _metadata(self) -> dict[str, Any]:
        """Where the measurements come from, and how long the whole took."""
        makespan = self.execution.get("makespanInSeconds")
        known = {
            "importedFrom": f"WfFormat {SCHEMA}",
            "measuredMakespanSeconds": makespan if _is_number(makespan) else None,
            "executedAt": self.execution.get("executedAt"),
            "runtimeSystem": self.whole.get("runtimeSystem"),
            "title": self.whole.get("name"),
        }
        return {key: value for key, value in known.items() if value}

    def machines(self, workflow_id: str) -> list[Resource]:
        """The machines of the file, for the record: nothing is scheduled on them."""
        return [_resource(node, workflow_id) for node in self.nodes]

    def profiles(self, workflow_id: str, resources: Iterable[Resource]) -> Iterator[Profile]:
        """Each measured runtime on each resource, divided by its speedup."""
        speeds = [(resource.id, speedup(resource)) for resource in resources]
        for task in self.tasks:
            run = self.executed.get(task.id)
            if run is None or run.runtime_in_seconds is None:
                continue
            for resource_id, speed in speeds:
                yield Profile(
                    type_id(workflow_id, task.id),
                    resource_id,
                    run.runtime_in_seconds / speed,
                    peak_memory_bytes=int(run.memory_in_bytes),
                    source=MEASURED,
                    sample_size=1,
                )

    def warnings(self) -> Iterator[str]:
        """What the file leaves open."""
        unknown = [t.id for t in self.tasks if not self._is_measured(t.id)]
        if unknown:
            yield f"{len(unknown)} tasks have no runtime, such as {unknown[0]!r}"
        unsized = {name for _, _, name in self._flows() if name not in self.files}
        if unsized:
            yield f"{len(unsized)} files have no size and count 0 bytes, such as {min(unsized)!r}"

    def _is_measured(self, task_id: str) -> bool:
        run = self.executed.get(task_id)
        return run is not None and run.runtime_in_seconds is not None


def type_id(workflow_id: str, task_id: str) -> str:
    """The activity type of one task: measurements are of a task, not of a kind of tasks."""
    return f"{workflow_id}:{task_id}"


def _command(command: Object) -> Command:
    program, arguments = command.get("program"), command.get("arguments")
    return Command(
        executable=program if isinstance(program, str) else "",
        arguments=tuple(map(str, arguments)) if isinstance(arguments, list) else (),
    )


def _resource(node: Machine, workflow_id: str) -> Resource:
    cores: Any = node.cpu.get("coreCount")
    count = max(0, int(cores)) if _is_number(cores) else 0
    known = {"nodeName": node.node_name, "architecture": node.architecture, "cpu": node.cpu}
    return Resource(
        f"{workflow_id}:{node.node_name}",
        type="hpc_machine",
        name=node.node_name,
        cpu_cores=count,
        cpu_capacity=float(count),
        memory_bytes=int(node.memory_in_bytes),
        compute_speedup=1.0,
        metadata={key: value for key, value in known.items() if value},
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
