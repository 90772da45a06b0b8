"""What is done for one activity outside the log, each in a thread: prepare, start, look, stop.

None of these records anything: what they found goes back to the supervisor, which does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from statelog.domain.errors import StatelogError
from statelog.domain.runs.events import Placed, TransferCompleted
from statelog.domain.runs.request import RunRequest
from statelog.domain.runs.transfer import real_id
from statelog.domain.workflows.network import Network
from statelog.domain.workflows.workflow import Activity
from statelog.infrastructure.runs.commands import spec
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.port import (
    Observation,
    Ref,
    Runtime,
    RuntimeFailure,
    Seen,
    Spec,
)
from statelog.infrastructure.runs.outputs import Observed, expected, observe
from statelog.infrastructure.runs.workspaces import Abandoned, Moved, synchronise

NOTHING = Observed((), ())


@dataclass(frozen=True)
class Prepared:
    """The workspace is filled and the command is known."""

    spec: Spec
    transfers: tuple[TransferCompleted, ...]


@dataclass(frozen=True)
class Unprepared:
    """The activity cannot be started, and why."""

    reason: str


@dataclass(frozen=True)
class Left:
    """It was abandoned because the supervisor leaves, a preparation also because the run fails."""


@dataclass(frozen=True)
class Looked:
    """What a runtime says, and which declared outputs are there if the activity completed."""

    observation: Observation
    observed: Observed = NOTHING


@dataclass(frozen=True)
class Missed:
    """The runtime could not be asked. `stopping`: it was asked to stop."""

    why: str
    stopping: bool = False


Found = Prepared | Unprepared | Left | Looked | Missed


@dataclass(frozen=True)
class Operations:
    """The outside of one run. `runtimes` are those that are built, by the ids of the request.

    `sources` are the workspaces of activities that were kept from another run. `leave` says that
    nothing more is to be started, `stopped` that whoever supervises leaves the run as it is.
    """

    request: RunRequest
    root: Path
    runtimes: Mapping[str, Runtime]
    sources: Mapping[str, Path]
    leave: Callable[[], bool]
    stopped: Callable[[], bool] = lambda: False

    @property
    def folder(self) -> RunFolder:
        """Where the run's files are."""
        return RunFolder(self.root, self.request.run.id)

    def ref(self, activity_id: str) -> Ref:
        """How runtimes know an activity."""
        return Ref(self.request.run.id, activity_id)

    def prepare(self, placed: Placed) -> Found:
        """Fill the workspace with what each producer left, then see what to start (4.3)."""
        activity_id = placed.activity_id
        try:
            if placed.runtime_id not in self.runtimes:
                return Unprepared(f"runtime {placed.runtime_id!r} is not built")
            self.folder.made(self.folder.workspace(activity_id))
            transfers = [self._brought(each, placed) for each in self._producers(activity_id)]
            activity = self._activity(activity_id)
            runtime = next(e for e in self.request.runtimes if e.id == placed.runtime_id)
            ready = spec(activity, self.ref(activity_id), self.folder, placed, runtime)
        except Abandoned:
            return Left()
        except (StatelogError, OSError) as error:
            return Unprepared(str(error))
        return Prepared(ready, tuple(transfers))

    def start(self, ready: Spec) -> Found:
        """Hand the command to its runtime."""
        try:
            return self._completed(self.runtimes[ready.runtime_id].start(ready))
        except Abandoned:
            return Left()
        except (RuntimeFailure, OSError) as error:
            return Missed(str(error))

    def look(self, placed: Placed, runtime_id: str) -> Found:
        """Ask the runtime how it is."""
        try:
            runtime = self._runtime(runtime_id)
            return self._completed(runtime.inspect(self.ref(placed.activity_id)))
        except Abandoned:
            return Left()
        except (RuntimeFailure, OSError) as error:
            return Missed(str(error))

    def stop(self, placed: Placed, runtime_id: str) -> Found:
        """Ask the runtime to end it."""
        try:
            runtime = self._runtime(runtime_id)
            return self._completed(runtime.stop(self.ref(placed.activity_id)))
        except Abandoned:
            return Left()
        except (RuntimeFailure, OSError) as error:
            return Missed(str(error), stopping=True)

    def _runtime(self, runtime_id: str) -> Runtime:
        if runtime_id not in self.runtimes:
            raise RuntimeFailure(f"runtime {runtime_id!r} is not built")
        return self.runtimes[runtime_id]

    def _completed(self, found: Observation) -> Looked:
        """With the outputs that are there. Raises `Abandoned` when this is to leave meanwhile."""
        if found.seen is not Seen.COMPLETED:
            return Looked(found)
        activity_id = found.ref.activity_id
        paths = expected(self._activity(activity_id).metadata)
        workspace = self.folder.workspace(activity_id)
        return Looked(found, observe(workspace, paths, self.stopped))

    def _activity(self, activity_id: str) -> Activity:
        return next(each for each in self.request.workflow.activities if each.id == activity_id)

    def _producers(self, activity_id: str) -> Sequence[str]:
        """Whose data the activity needs, by id. Control alone moves nothing."""
        return sorted(
            {
                each.producer_activity_id
                for each in self.request.workflow.data_dependencies
                if each.consumer_activity_id == activity_id
            }
        )

    def _brought(self, producer: str, consumer: Placed) -> TransferCompleted:
        source = self.sources.get(producer) or self.folder.workspace(producer)
        target = self.folder.workspace(consumer.activity_id)
        spare = self.folder.control(consumer.activity_id)
        return self._transfer(producer, consumer, synchronise(source, target, spare, self.leave))

    def _transfer(self, producer: str, consumer: Placed, moved: Moved) -> TransferCompleted:
        source, target = self._resource_of(producer), consumer.resource_id
        topology = self.request.network_topology
        link = Network(topology).direct(source, target) if topology is not None else None
        return TransferCompleted(
            real_id(self.request.run.id, consumer.activity_id, producer),
            producer,
            consumer.activity_id,
            source,
            target,
            moved.bytes,
            moved.started_at,
            moved.finished_at,
            duration_seconds=moved.finished_at - moved.started_at,
            cost=moved.bytes * link.price_per_byte if link is not None else 0.0,
            strategy=moved.strategy,
            files_transferred=moved.files,
        )

    def _resource_of(self, activity_id: str) -> str:
        assignments = self.request.plan.assignments
        return next((e.resource_id for e in assignments if e.activity_id == activity_id), "")


def now() -> float:
    """Epoch seconds."""
    return time.time()
