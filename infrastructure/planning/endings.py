"""Ending a session together with those of its runs that have not ended, in one append (P1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict, Invalid, NotFound, Refused, StoreError
from statelog.domain.planning import algorithm_run as runs
from statelog.domain.planning import session as sessions
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN, AlgorithmRun
from statelog.domain.planning.session import SESSION, Session
from statelog.domain.queue.job import Job
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.ends import OnFailure

_TRIES: Final = 100
"""A run that emits moves its stream each time, and it is bounded how often it does."""


def end(
    journal: Journal, id: str, decision: Callable[..., Sequence[Any]], *, actor: str, **given: Any
) -> Loaded[Session]:
    """End a session by this decision, and cancel its live runs; nothing when that is said already.

    A candidate that comes later meets a run that has moved on. Raises `NotFound`, and what the
    decision raises; a refusal is kept.
    """
    ended: dict[str, Loaded[AlgorithmRun]] = {}
    for tries_left in reversed(range(_TRIES)):
        session = load_session(journal, id)
        change = _decided(journal, session, decision, actor, given)
        if not change.events:
            return session
        found = load_runs(journal, session, ended)
        ended = {run.state.algorithm: run for run in found if run.state.ended}
        try:
            journal.commit(change, *(run.decide(runs.cancel) for run in found), actor=actor)
        except Conflict:
            if not tries_left:
                raise
        else:
            return change.after
    raise AssertionError("unreachable")


def abandoned(journal: Journal) -> OnFailure:
    """What is written when the job of a session fails for good: nobody will work on it any more.

    The session fails with the job's last error, and what is left of its runs is cancelled, so that
    neither waits for ever; nothing for one that has ended, or is not there.
    """

    def on_failure(job: Loaded[Job], error: str) -> Sequence[Change[Any]]:
        session = journal.load(SESSION, str(job.state.payload["sessionId"]))
        if not session.version or session.state.ended:
            return ()
        reason = f"planning was given up after {job.state.attempts} attempts: {error}"
        failed = session.decide(sessions.fail, reason=reason)
        return [failed, *(run.decide(runs.cancel) for run in load_runs(journal, session))]

    return on_failure


def load_session(journal: Journal, id: str) -> Loaded[Session]:
    """A session as decisions see it. Raises `NotFound`."""
    try:
        loaded = journal.load(SESSION, id)
    except Invalid:
        raise NotFound("session", id) from None
    if not loaded.version:
        raise NotFound("session", id)
    return loaded


def load_runs(
    journal: Journal,
    session: Loaded[Session],
    known: Mapping[str, Loaded[AlgorithmRun]] = MappingProxyType({}),
) -> list[Loaded[AlgorithmRun]]:
    """The algorithm runs of a session in the order they were selected.

    Those that are `known` by algorithm are not loaded: what has ended stays as it is.
    """
    ids = [each.id for each in session.state.algorithms]
    return [known.get(id) or journal.load(ALGORITHM_RUN, (str(session.id), id)) for id in ids]


def _decided(
    journal: Journal,
    session: Loaded[Session],
    decision: Callable[..., Sequence[Any]],
    actor: str,
    given: dict[str, Any],
) -> Change[Session]:
    try:
        return session.decide(decision, **given)
    except Refused as refused:
        # evidence is no reason to hide the refusal itself behind a full disk
        with suppress(StoreError):
            journal.refuse(
                actor=actor,
                stream=session.stream,
                version=session.version,
                command=None,
                rule=refused.rule,
                reason=refused.reason,
            )
        raise
