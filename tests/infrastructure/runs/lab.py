"""A lab for real runs: workflows of shell lines, submitted by hand to a supervisor of this process.

`Lab.run` begins the run as its job does and supervises it to its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from statelog.domain.aggregate import Loaded
from statelog.domain.event import Event
from statelog.domain.runs.admission import admitted
from statelog.domain.runs.request import RunRequest, RunSpec
from statelog.domain.runs.run import RUN, Run, start
from statelog.domain.workflows.resources import Resource, Runtime, RuntimeBinding, Scope
from statelog.domain.workflows.schedule_plan import Assignment, SchedulePlan
from statelog.domain.workflows.workflow import (
    Activity,
    Command,
    DataDependency,
    Dependency,
    WorkflowVersion,
)
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.local import LocalRuntime
from statelog.infrastructure.runs.handles.port import RUN_ID
from statelog.infrastructure.runs.supervisor import supervise
from tests.infrastructure.runs.place import processes

Edge = tuple[str, str]
FOREVER = "sleep 1000"


def activity(id: str, line: str, **given) -> Activity:
    """An activity that runs a shell line."""
    command = Command(entrypoint="/bin/sh", arguments=("-c", line), **given.pop("command", {}))
    given = {"name": id, "capabilities": ("real",), "activity_type_id": "t", **given}
    return Activity(id, command=command, **given)


def request(
    run_id: str,
    activities: Sequence[Activity],
    *,
    control: Sequence[Edge] = (),
    data: Sequence[Edge] = (),
    cores: int = 4,
    price: float = 0.0,
    assigned: Mapping[str, Mapping] | None = None,
    **given,
) -> RunRequest:
    """A request for a real run on one machine called `here`; edges are (before, after)."""
    names = [each.id for each in activities]
    workflow = WorkflowVersion(
        "w-v1",
        workflow_id="w",
        definition_hash="w-v1",
        activities=tuple(replace(each, workflow_version_id="w-v1") for each in activities),
        dependencies=tuple(Dependency(after, before) for before, after in control),
        data_dependencies=tuple(DataDependency(a, b, "files", 1) for a, b in data),
    )
    assignments = [
        replace(
            Assignment(name, "here", f"p-{name}", "p", "here-core-1", order_on_resource=at),
            **(assigned or {}).get(name, {}),
        )
        for at, name in enumerate(names)
    ]
    machines = (
        machine("here", cpu_cores=cores, cpu_capacity=float(cores), price_per_second=price),
        *given.pop("resources", ()),
    )
    return RunRequest(
        RunSpec(run_id, "p", "real", recovers_run_id=given.pop("recovers_run_id", "")),
        SchedulePlan("p", workflow.id, "s", assignments=tuple(assignments)),
        workflow,
        resources=machines,
        execution_scope=Scope("s", "s", environment_version_ids=("e-v1",)),
        runtimes=(LOCAL,),
        runtime_bindings=tuple(RuntimeBinding(each.id, "local", True) for each in machines),
        **given,
    )


def machine(id: str, **given) -> Resource:
    """A machine that may be used."""
    return Resource(id, "e-v1", schedulable=True, **given)


LOCAL = Runtime("local", "e-v1", driver="local", mode="execution")


class Lab:
    """A journal and a work root; `runtime` is what commands run on."""

    def __init__(self, store: Path | None, work_root: Path) -> None:
        self.journal = Journal(store)
        self.work_root = work_root
        self.runtime: Any = LocalRuntime(work_root, grace_s=0.5)
        self.run_id = f"run-{uuid4().hex[:12]}"
        self.stop = threading.Event()
        self.ids = {self.run_id}

    def request(self, activities: Sequence[Activity], **given) -> RunRequest:
        return request(given.pop("run_id", self.run_id), activities, **given)

    def begin(self, asked: RunRequest, kept: Sequence[Event] = ()) -> None:
        self.ids.add(asked.run.id)
        started = admitted(asked, at=time.time())
        self.journal.execute(RUN, asked.run.id, start, actor="test", started=started, kept=kept)

    def supervise(self, asked: RunRequest, stop: threading.Event | None = None) -> Run:
        runtimes = {"local": self.runtime}
        loaded: Loaded[Run] = supervise(
            self.journal,
            asked,
            work_root=self.work_root,
            runtimes=runtimes,
            actor="test",
            stop=stop or self.stop,
        )
        return loaded.state

    def run(self, activities: Sequence[Activity], **given) -> Run:
        asked = self.request(activities, **given)
        self.begin(asked)
        return self.supervise(asked)

    def state(self) -> Run:
        return self.journal.load(RUN, self.run_id).state

    def names(self, run_id: str | None = None) -> list[str]:
        return [each.name for each in self.journal.history(f"run/{run_id or self.run_id}")]

    def file(self, activity_id: str, name: str) -> Path:
        return RunFolder(self.work_root, self.run_id).workspace(activity_id) / name

    def control(self, activity_id: str, name: str) -> Path:
        return RunFolder(self.work_root, self.run_id).control(activity_id) / name

    def alive(self) -> list[int]:
        return [pid for id in self.ids for pid in processes(f"{RUN_ID}={id}")]

    def close(self) -> None:
        self.runtime.close()
        self.journal.close()


__all__ = ["FOREVER", "LOCAL", "Lab", "activity", "machine", "request"]
