"""The supervisor: takes one real run to its end, or as far as it may stay (4.3, P12, P19).

It alone writes the run's stream, but for requests to interrupt. Whatever takes time is done in
threads, one thing at a time for each activity; whatever they found is decided and recorded here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict, StoreError
from statelog.domain.runs import activities
from statelog.domain.runs.events import Placed, TaskFailed, TaskInterruptRequested
from statelog.domain.runs.request import RunRequest
from statelog.domain.runs.run import RUN, Run
from statelog.domain.workflows.durations import lane_count
from statelog.infrastructure.journal import TRIES, Journal
from statelog.infrastructure.runs import recording
from statelog.infrastructure.runs.attention import Attention
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.port import Runtime
from statelog.infrastructure.runs.operations import (
    Found,
    Missed,
    Operations,
    Prepared,
    Unprepared,
    now,
)
from statelog.infrastructure.runs.ownership import alone, refusal
from statelog.infrastructure.runs.sources import kept_workspaces
from statelog.infrastructure.runs.waiting import Waiting

log = logging.getLogger("statelog.runs.supervisor")

MOST_STARTS: Final = 8
MOST_LOOKS: Final = 16
_TURN_S: Final = 0.5

Launch = Callable[[], None]


def supervise(
    journal: Journal,
    request: RunRequest,
    *,
    work_root: Path,
    runtimes: Mapping[str, Runtime],
    actor: str,
    stop: threading.Event,
    because: str = "",
) -> Loaded[Run]:
    """Take a run that has started to its end; the run as it is then.

    When `stop` is set first, it is left as it is, and what it started goes on: whoever supervises
    it next attaches to that. While another process supervises the run this waits. `runtimes` are
    by the ids of the request. With `because` nothing more is started, what runs is stopped, and
    the run fails for that reason. Raises `StoreError` when the store fails it.
    """
    with alone(journal, request.run.id, stop) as holder:
        loaded = journal.load(RUN, request.run.id)
        if holder is None or loaded.state.ended:
            return loaded
        why = refusal(journal, loaded, RunFolder(work_root, request.run.id))
        if why:
            change = recording.unusable(loaded.guard(), why, now())
            return journal.commit(change, actor=actor).loaded[0]
        sources = kept_workspaces(journal, work_root, loaded.state)
        supervisor = Supervisor(journal, loaded, request, actor, stop, because=because)
        leaving = (supervisor.leaves, stop.is_set)
        outside = Operations(request, work_root, runtimes, sources, *leaving)
        return supervisor.run(outside)


class Supervisor:
    """One run at work. Use `supervise`, which takes the lock."""

    def __init__(
        self,
        journal: Journal,
        loaded: Loaded[Run],
        request: RunRequest,
        actor: str,
        stop: threading.Event,
        *,
        because: str = "",
    ) -> None:
        self._because = because
        self._journal, self._loaded, self._actor, self._stop = journal, loaded, actor, stop
        self._lanes = {each.id: lane_count(each) for each in request.resources}
        self._guard = threading.Lock()
        self._arrived: list[tuple[str, Found]] = []
        self._busy: set[str] = set()
        self._attention = Attention()
        self._failing = False
        self._heard = False

    def leaves(self) -> bool:
        """Whether nothing more is to be started: this is stopping, or the run has failed."""
        return self._failing or self._stop.is_set()

    def run(self, outside: Operations) -> Loaded[Run]:
        """Turn after turn until the run has ended or this is to leave."""
        self._outside = outside
        with (
            Waiting() as self._waiting,
            ThreadPoolExecutor(MOST_LOOKS, "run look") as self._lookers,
            ThreadPoolExecutor(MOST_STARTS, "run start") as self._starters,
            self._listening(),
        ):
            while not self._turn():
                patience_s = self._attention.patience_s(self._loaded.state, self._busy)
                self._waiting.wait(min(_TURN_S, patience_s))
                self._attention.over(self._waiting.over)
        return self._loaded

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Hear of requests to interrupt as they are committed, by whatever process."""
        names, ended = (TaskInterruptRequested.stored_name,), threading.Event()
        stream = self._loaded.stream
        with self._journal.follow(
            after=self._journal.head(), prefix=stream, names=names
        ) as follower:

            def listen() -> None:
                while not ended.is_set():
                    try:
                        for _ in follower.events(ended.is_set):
                            self._heard = True
                            self._waiting.wake()
                    except StoreError as error:
                        log.warning(
                            "run %s: the log cannot be followed: %s", self._loaded.id, error
                        )
                        ended.wait(_TURN_S)

            thread = threading.Thread(target=listen, name="run interrupts", daemon=True)
            thread.start()
            self._reload()
            try:
                yield
            finally:
                ended.set()
                follower.wake()
                thread.join()

    def _turn(self) -> bool:
        """Record what arrived, do what follows from it; whether that was the last turn."""
        if self._heard:
            self._reload()
        with self._guard:
            arrived = tuple(self._arrived)
        for activity_id, found in arrived:
            self._attention.note(activity_id, found, self._watch)
        launches = self._recorded(arrived)
        with self._guard:
            del self._arrived[: len(arrived)]
            self._busy -= {activity_id for activity_id, _ in arrived}
        if self._loaded.state.ended:
            return True
        for launch in launches:
            launch()
        if self._stop.is_set():
            return not self._busy
        self._attend()
        return False

    def _recorded(self, arrived: tuple[tuple[str, Found], ...]) -> list[Launch]:
        """Decide and commit, again when somebody asked to interrupt meanwhile."""
        for tries_left in reversed(range(TRIES)):
            launches: list[Launch] = []
            change = self._decided(arrived, launches)
            if not change.events:
                return launches
            try:
                self._loaded = self._journal.commit(change, actor=self._actor).loaded[0]
                return launches
            except Conflict:
                if not tries_left:
                    raise
                self._reload()
        raise AssertionError("unreachable")

    def _decided(
        self, arrived: tuple[tuple[str, Found], ...], launches: list[Launch]
    ) -> Change[Run]:
        change = self._loaded.guard()
        if change.state.ended:
            return change
        cause = recording.first_failure(change.state) or self._because
        # failures first, so that nothing is started beside them
        for activity_id, found in sorted(arrived, key=lambda pair: isinstance(pair[1], Prepared)):
            if isinstance(found, Prepared):
                if cause or self._stop.is_set():
                    continue
                launches.append(partial(self._start, activity_id, found))
            known = len(change.events)
            change = self._judged(change, activity_id, found, cause)
            if any(isinstance(event, TaskFailed) for event in change.events[known:]):
                cause = recording.first_failure(change.state) or cause
        self._failing = bool(cause)
        if not cause and not self._stop.is_set():
            change = self._admitted(recording.queued(change, now()), launches)
        busy = self._busy - {activity_id for activity_id, _ in arrived}
        if busy or launches or change.state.live:
            return change
        return recording.ended(change, cause, leaving=self._stop.is_set(), at=now())

    def _judged(
        self, change: Change[Run], activity_id: str, found: Found, cause: str
    ) -> Change[Run]:
        return recording.judged(
            change,
            activity_id,
            found,
            cause=cause,
            doom=self._attention.doom(activity_id),
            given_up=self._attention.given_up(activity_id),
            at=now(),
        )

    def _admitted(self, change: Change[Run], launches: list[Launch]) -> Change[Run]:
        again = list(recording.unprepared(change.state, self._busy))
        for placed in recording.admissible(change.state, self._lanes):
            change = change.then(activities.prepare_task, activity_id=placed.activity_id, at=now())
            again.append(placed)
        launches += [partial(self._prepare, placed) for placed in again]
        return change

    def _prepare(self, placed: Placed) -> None:
        work = partial(self._outside.prepare, placed)
        self._submit(self._starters, placed.activity_id, work, Unprepared)

    def _start(self, activity_id: str, found: Prepared) -> None:
        work = partial(self._outside.start, found.spec)
        self._submit(self._starters, activity_id, work, Missed)

    def _attend(self) -> None:
        """Stop what is to stop, and look at what is due."""
        run = self._loaded.state
        for activity_id, stop in self._attention.next(run, self._busy, self._failing):
            wish = self._outside.stop if stop else self._outside.look
            work = partial(wish, run.placed[activity_id], run.handle(activity_id).runtime_id)
            self._submit(self._lookers, activity_id, work, partial(Missed, stopping=stop))

    def _submit(
        self,
        pool: Executor,
        activity_id: str,
        work: Callable[[], Found],
        otherwise: Callable[[str], Found],
    ) -> None:
        def done(future: Future[Found]) -> None:
            error = future.exception()
            if error is not None:
                log.error(
                    "run %s, activity %s: unexpected error",
                    self._loaded.id,
                    activity_id,
                    exc_info=error,
                )
            found = future.result() if error is None else otherwise(repr(error))
            with self._guard:
                self._arrived.append((activity_id, found))
            self._waiting.wake()

        self._busy.add(activity_id)
        pool.submit(work).add_done_callback(done)

    def _watch(self, activity_id: str) -> bool:
        """Be woken at its end; whether that can be."""
        if activity_id in self._waiting:
            return True
        handle = self._loaded.state.handle(activity_id)
        runtime = self._outside.runtimes.get(handle.runtime_id)
        descriptor = runtime.watch(self._outside.ref(activity_id)) if runtime else None
        if descriptor is None:
            return False
        self._waiting.add(activity_id, descriptor)
        return True

    def _reload(self) -> None:
        self._heard = False
        self._loaded = self._journal.load(RUN, self._loaded.id)
