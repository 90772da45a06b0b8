"""Execution runs of one journal: asked for, interrupted, repeated and read (2.5, 2.8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from statelog.domain.aggregate import Loaded, changed
from statelog.domain.errors import Invalid, NotFound, Refused
from statelog.domain.ids import encode_part
from statelog.domain.queue.job import JOB, Job
from statelog.domain.runs import activities
from statelog.domain.runs.recovery import recoverable
from statelog.domain.runs.recovery import reusable as checked_reusable
from statelog.domain.runs.request import Recovery, RunRequest
from statelog.domain.runs.run import RUN, Run
from statelog.domain.workflows.shape import read
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.handler import run_failure, run_handler
from statelog.infrastructure.runs.submit import job_id_of, request_for, submit
from statelog.infrastructure.views import Views
from statelog.infrastructure.workflows.definitions import Definitions
from statelog.projections.projection import Projection
from statelog.projections.replay import replay
from statelog.projections.runs.comparison import evidence, run_comparison
from statelog.projections.runs.run_page import run_page
from statelog.projections.runs.run_summary import ALL, chosen, newest_first, page_of, run_summary

__all__ = ["Runs", "run_failure", "run_handler"]


class Runs:
    """The execution runs of one journal. With `views` its documents are read from there."""

    def __init__(self, journal: Journal, *, views: Views | None = None) -> None:
        self.journal = journal
        self._views = views

    # requests

    def submit(self, request: RunRequest, *, actor: str) -> Loaded[Job]:
        """Ask for a run; the first job when the same run was asked for before (P2, P10).

        Raises `Invalid` naming the field: an empty id, an unknown mode, what is not built, a
        definition that breaks a rule or differs from the registered one, a run that cannot be
        recovered so. Then nothing is stored.
        """
        if request.run.recovers_run_id and not self._asked_for(request.run.id):
            self._check_recovery(request)
        return submit(self.journal, request, actor=actor)

    def submit_plan(
        self, plan_id: str, *, run_id: str, mode: str, actor: str, seed: int = 0
    ) -> Loaded[Job]:
        """Ask for a run of a registered plan. Raises as `submit`, `NotFound` for the plan."""
        definitions = Definitions(self.journal)
        request = request_for(definitions, plan_id, run_id=run_id, mode=mode, seed=seed)
        return self.submit(request, actor=actor)

    def recover(
        self, run_id: str, new_run_id: str, reusable: Collection[str] = (), *, actor: str
    ) -> Loaded[Job]:
        """Repeat a failed run as a new one that keeps these completed activities (2.8, P19).

        Raises `NotFound` for the run, `Refused` (`recoverable`) unless it failed, (`run_id`) when
        the new id is taken, `Invalid` for an activity that was not completed there.
        """
        recoverable(run_id, self.load(run_id).state)
        first = self._request(run_id)
        if not self._free_for(new_run_id, run_id):
            why = f"{new_run_id!r} is the id of another run; take one that is free"
            raise Refused(why, rule="run_id")
        request = changed(
            first,
            run=changed(first.run, id=new_run_id, recovers_run_id=run_id),
            recovery=Recovery(tuple(reusable)),
        )
        return self.submit(request, actor=actor)

    def _free_for(self, new_run_id: str, run_id: str) -> bool:
        """Whether a run of this id would be the one that repeats the other."""
        if not self._asked_for(new_run_id):
            return True
        return self._request(new_run_id).run.recovers_run_id == run_id

    def _check_recovery(self, request: RunRequest) -> None:
        old = self._load(request.run.recovers_run_id)
        field = "run.recoversRunId"
        if not old.version:
            raise Invalid(field, f"no run {request.run.recovers_run_id!r}")
        try:
            recoverable(request.run.recovers_run_id, old.state)
        except Refused as no:
            raise Invalid(field, no.reason) from None
        ids = request.recovery.reusable_activity_ids
        checked_reusable(old.state, ids, "recovery.reusableActivityIds")

    def interrupt(self, run_id: str, activity_id: str, *, actor: str) -> Loaded[Run]:
        """Ask to stop an activity; done already is done (2.8).

        Raises `NotFound` for the run or the activity, and `Refused`: `task_ended`, `handle_ended`,
        `no_handle` while there is nothing to stop.
        """
        if activity_id not in self.load(run_id).state.tasks:
            raise NotFound("activity", activity_id)
        done = self.journal.execute(
            RUN,
            run_id,
            activities.interrupt,
            actor=actor,
            activity_id=activity_id,
            at=self.journal.clock() / 1_000_000,
        )
        return done.loaded[0]

    # reading

    def load(self, run_id: str) -> Loaded[Run]:
        """The run as decisions see it. Raises `NotFound` until a worker has started it."""
        loaded = self._load(run_id)
        if not loaded.version:
            raise NotFound("run", run_id)
        return loaded

    def job(self, run_id: str) -> Loaded[Job]:
        """The job that asks for a run. Raises `NotFound`."""
        found = self.journal.load(JOB, job_id_of(run_id))
        if not found.version:
            raise NotFound("run", run_id)
        return found

    def get(self, run_id: str) -> dict[str, Any]:
        """The page of a run. Raises `NotFound` until a worker has started it."""
        return self._document(run_page, run_id)

    def comparison(self, run_id: str) -> dict[str, Any]:
        """Plan against observation, with the critical path. Raises `NotFound` as `get`."""
        return self._document(run_comparison, run_id)

    def all(self, *, mode: str = ALL, status: str = ALL, kind: str = ALL) -> list[dict[str, Any]]:
        """The `run` of every run, newest first; empty and `all` filter nothing."""
        lines = chosen(self._lines(), mode=mode, status=status, kind=kind)
        return [dict(line) for line in newest_first(lines)]

    def page(
        self,
        page: int = 1,
        page_size: int = 20,
        *,
        mode: str = ALL,
        status: str = ALL,
        kind: str = ALL,
    ) -> dict[str, Any]:
        """One page of `all`: `{items, page, pageSize, total, hasNext}`; a bad size is 20 (5)."""
        return page_of(self.all(mode=mode, status=status, kind=kind), page, page_size)

    def evidence(self, plan_id: str) -> list[dict[str, Any]]:
        """The runs that name a plan, newest first (case 72)."""
        return [dict(line) for line in evidence(plan_id, self.all())]

    def _load(self, run_id: str) -> Loaded[Run]:
        _known_id(run_id)
        return self.journal.load(RUN, run_id)

    def _asked_for(self, run_id: str) -> bool:
        return bool(run_id) and self.journal.load(JOB, job_id_of(run_id)).version > 0

    def _request(self, run_id: str) -> RunRequest:
        return read(RunRequest, self.job(run_id).state.payload)

    def _document(self, view: Projection[Any], run_id: str) -> dict[str, Any]:
        _known_id(run_id)
        if self._views is not None:
            found: Mapping[str, Any] | None = self._views.get(view.name, run_id)
        else:
            events = self.journal.history(RUN.stream_of(run_id), names=view.names)
            found = replay(view, events).get(run_id)
        if found is None:
            raise NotFound("run", run_id)
        return dict(found)

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        if self._views is not None:
            return (line for _, line in self._views.rows(run_summary.name))
        events = self.journal.history(RUN.name, names=run_summary.names)
        return iter(replay(run_summary, events).values())


def _known_id(run_id: str) -> None:
    """Raises `NotFound` for an id that no run can have."""
    try:
        encode_part(run_id)
    except Invalid:
        raise NotFound("run", run_id) from None
