"""Files in WfFormat 1.5: the parts that are used, read and checked against each other (P20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from statelog.domain.errors import Invalid, Malformed
from statelog.domain.workflows.shape import camel, read

SCHEMA: Final = "1.5"
R = TypeVar("R")
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A task as it was specified."""

    id: str
    name: str = ""
    parents: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    input_files: tuple[str, ...] = ()
    output_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A file and its bytes."""

    id: str
    size_in_bytes: int = 0


@dataclass(frozen=True)
class Execution:
    """What was measured of one task; None and 0 are not known."""

    id: str
    runtime_in_seconds: float | None = None
    core_count: float = 0.0
    memory_in_bytes: float = 0.0
    command: Object = field(default_factory=dict)
    machines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Machine:
    """Where tasks were measured; 0 is not known."""

    node_name: str
    cpu: Object = field(default_factory=dict)
    memory_in_bytes: float = 0.0
    architecture: str = ""


class Trace:
    """The parts of a document that are used.

    Raises `Malformed` and `Invalid` as `read_wfformat` says.
    """

    def __init__(self, document: Any) -> None:
        whole = _object(document, "")
        version = whole.get("schemaVersion")
        if version != SCHEMA:
            raise Invalid("schemaVersion", f"is {_said(version)}; only {SCHEMA!r} is read")
        workflow = _object(whole.get("workflow"), "workflow")
        at = "workflow.specification"
        specification = _object(workflow.get("specification"), at)
        self.tasks = _each(Task, specification.get("tasks"), f"{at}.tasks")
        self.files = {
            each.id: each.size_in_bytes
            for each in _each(File, specification.get("files", []), f"{at}.files")
        }
        at = "workflow.execution"
        self.execution = _object(workflow.get("execution", {}), at)
        executed = _each(Execution, self.execution.get("tasks", []), f"{at}.tasks")
        self.executed = {each.id: each for each in executed}
        self.nodes = _each(Machine, self.execution.get("machines", []), f"{at}.machines")
        self.whole = whole
        self._check(executed)

    def _check(self, executed: tuple[Execution, ...]) -> None:
        known: set[str] = set()
        for at, task in enumerate(self.tasks):
            if task.id in known:
                where = f"workflow.specification.tasks[{at}].id"
                raise Invalid(where, f"task {task.id!r} is there twice")
            known.add(task.id)
        for at, task in enumerate(self.tasks):
            for key, others in (("parents", task.parents), ("children", task.children)):
                for nth, other in enumerate(others):
                    if other not in known:
                        where = f"workflow.specification.tasks[{at}].{key}[{nth}]"
                        raise Invalid(where, f"no task {other!r} is specified")
        for at, run in enumerate(executed):
            where = f"workflow.execution.tasks[{at}]"
            if run.id not in known:
                raise Invalid(f"{where}.id", f"no task {run.id!r} is specified")
            numbers = (run.runtime_in_seconds or 0.0, run.core_count, run.memory_in_bytes)
            if min(numbers) < 0:
                raise Invalid(where, f"a measurement of task {run.id!r} is negative")
        names = [node.node_name for node in self.nodes]
        for at, node_name in enumerate(names):
            if node_name in names[:at]:
                where = f"workflow.execution.machines[{at}].nodeName"
                raise Invalid(where, f"machine {node_name!r} is there twice")


def _said(value: Any) -> str:
    return repr(value)[:40]


def _object(value: Any, where: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise Malformed(where, "must be an object" if value is not None else "is missing")
    return value


def _each(kind: type[R], value: Any, where: str) -> tuple[R, ...]:
    """A list of objects as records, keys that are not used left out."""
    if type(value) is not list:
        raise Malformed(where, "must be a list" if value is not None else "is missing")
    known = {camel(each.name) for each in fields(kind)}  # type: ignore[arg-type]
    used = [
        {key: item for key, item in each.items() if key in known} if type(each) is dict else each
        for each in value
    ]
    return read(tuple[kind, ...], used, where)  # type: ignore[valid-type]
