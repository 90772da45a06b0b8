"""What an attempt does next, told from its state alone."""

from __future__ import annotations

from typing import Any

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.execution import attempt as attempts
from statelog.domain.execution.attempt import Attempt
from statelog.domain.execution.graph import Graph, Scheduler, blockers, newly_blocked
from statelog.domain.execution.outcomes import BLOCKED, FAILED
from statelog.infrastructure.execution.closing import Ending, final_report

NOW = "2026-01-01T00:00:00.000000Z"


def closed(
    attempt: Loaded[Attempt], ending: Ending, failure: Any = None
) -> tuple[Change[Any], dict[str, Any]]:
    """The close of an attempt, and its report."""
    report = final_report(attempt.state, ending, NOW, failure)
    return attempt.decide(attempts.close, report=report), report.to_json()


def _graph(attempt: Attempt) -> Graph:
    return Graph.of(attempt.deps.items())


def _fails_fast(attempt: Attempt) -> bool:
    failed = FAILED in attempt.outcomes.values()
    return failed and attempt.start.failure_policy == "fail_fast"


def next_step(attempt: Attempt) -> str | None:
    """The step that runs next, by the real scheduler; None when none does or one is running."""
    if attempt.running is not None or _fails_fast(attempt) or to_block(attempt):
        return None
    scheduler = Scheduler(_graph(attempt))
    while (step_id := scheduler.next()) is not None:
        outcome = attempt.outcomes.get(step_id)
        if outcome is None:
            return step_id
        if outcome not in (FAILED, BLOCKED):
            scheduler.satisfied(step_id)
    return None


def to_block(attempt: Attempt) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """What a failed step blocks and is not blocked yet."""
    outcomes, graph = attempt.outcomes, _graph(attempt)
    if attempt.running is not None or _fails_fast(attempt):
        return []
    failed = [step_id for step_id, outcome in outcomes.items() if outcome == FAILED]
    names = [name for step_id in failed for name in newly_blocked(graph, step_id, outcomes)]
    found = blockers(graph, {**outcomes, **dict.fromkeys(names, BLOCKED)}, names)
    return [(name, found[name].direct, found[name].ancestors) for name in names]


def ending(attempt: Attempt) -> str | None:
    """How an attempt ends that has nothing left to run; None while it has."""
    if attempt.running is not None or to_block(attempt):
        return None
    if _fails_fast(attempt):
        return "failed_fast"
    return "completed" if len(attempt.outcomes) == len(attempt.deps) else None
