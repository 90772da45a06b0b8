"""The handler of run requests: takes a run to its end, in simulation or for real (2.5, P19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.queue.job import JOB, Job
from statelog.domain.runs.admission import admitted
from statelog.domain.runs.events import TaskKept
from statelog.domain.runs.recovery import kept
from statelog.domain.runs.request import RunRequest
from statelog.domain.runs.run import RUN, SIMULATION, Run, fail, start
from statelog.domain.workflows.shape import read
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.ends import OnFailure
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.queue.worker import Handler, Interrupted, Work
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.simulation import run_simulation
from statelog.infrastructure.runs.submit import CATEGORY, REQUESTED, job_id_of

ACTOR: Final = "runner"


def run_handler(journal: Journal, work_root: Path, *, actor: str = ACTOR) -> Handler:
    """The handler of `execution.run.requested`; real runs work in folders below `work_root`.

    It returns when the run has ended, however that was, and at once for one that had. A request
    that cannot be run raises `Invalid` and creates no run. Raises `Interrupted` when the worker
    stops, so that the job is delivered again.
    """
    real = _Real(journal, work_root, actor)

    def handle(work: Work) -> None:
        request = read(RunRequest, work.payload)
        if journal.load(RUN, request.run.id).state.ended:
            return
        if request.run.mode == SIMULATION:
            run_simulation(journal, request, actor=actor, stop=work.stop, guard=work.guard)
        else:
            real.run(request, work)

    return handle


class _Real:
    """Real runs, all with the same local runtime: it knows what it started itself."""

    def __init__(self, journal: Journal, work_root: Path, actor: str) -> None:
        self._journal, self._root, self._actor = journal, work_root, actor
        self._local: Any = None

    def run(self, request: RunRequest, work: Work) -> None:
        """Start the run if that was not done, and supervise it to its end."""
        from statelog.infrastructure.runs.supervisor import supervise

        self._start(request, work)
        ended = supervise(
            self._journal,
            request,
            work_root=self._root,
            runtimes=self._runtimes(request),
            actor=self._actor,
            stop=work.stop,
            because=self._because(request, work),
        )
        if not ended.state.ended:
            raise Interrupted

    def _because(self, request: RunRequest, work: Work) -> str:
        """Why the run is only to be ended: this is not the job that asked for it, which failed."""
        asked = job_id_of(request.run.id)
        if work.job_id == asked:
            return ""
        return f"its job failed: {self._journal.load(JOB, asked).state.last_error}"

    def _start(self, request: RunRequest, work: Work) -> None:
        run = self._journal.load(RUN, request.run.id)
        if run.version:
            return
        begun = admitted(request, at=self._journal.clock() / 1_000_000)
        change = run.decide(start, started=begun, kept=self._kept(request))
        guards = () if work.guard is None else (work.guard,)
        self._journal.commit(change, *guards, actor=self._actor)

    def _kept(self, request: RunRequest) -> Sequence[TaskKept]:
        """What the run takes over; of what has no workspace any more only what nobody needs."""
        old_id, ids = request.run.recovers_run_id, request.recovery.reusable_activity_ids
        if not old_id:
            return ()
        old = self._journal.load(RUN, old_id).state
        gone = [each for each in ids if not self._workspace(old_id, old, each).is_dir()]
        return kept(old_id, old, ids, gone=gone)

    def _workspace(self, old_id: str, old: Run, activity_id: str) -> Path:
        run_id = old.tasks[activity_id].kept_from or old_id
        return RunFolder(self._root, run_id).workspace(activity_id)

    def _runtimes(self, request: RunRequest) -> Mapping[str, Any]:
        from statelog.infrastructure.runs.handles.local import LocalRuntime

        if self._local is None:
            self._local = LocalRuntime(self._root)
        return {runtime.id: self._local for runtime in request.runtimes}


def run_failure(journal: Journal) -> OnFailure:
    """What belongs to the final failure of a run's job: the run fails with it, if it had begun.

    Where something may still run a further job is published, to stop that and end the run.
    """

    def beside(job: Loaded[Job], error: str) -> Sequence[Change[Any]]:
        run = journal.load(RUN, job.state.aggregate_id)
        if not run.version or run.state.ended:
            return ()
        if run.state.live:
            return (_to_end(journal, job),)
        at = journal.clock() / 1_000_000
        return (run.decide(fail, reason=f"its job failed: {error}", at=at),)

    return beside


def _to_end(journal: Journal, failed: Loaded[Job]) -> Change[Job]:
    """A job that ends a run; should it fail as well, the next one has another key."""
    return Queue(journal).publication(
        category=CATEGORY,
        event_type=REQUESTED,
        aggregate_type="execution_run",
        aggregate_id=failed.state.aggregate_id,
        payload=failed.state.payload,
        key=f"execution-run-end:{failed.id}",
    )
