"""The graph of a plan: cycles, the order of runnable steps, and who blocks whom (5.1, 5.5).

Every walk is a loop, so the depth of a plan is not bounded by the interpreter's stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from statelog.domain.execution.outcomes import BLOCKED, FAILED


@dataclass(frozen=True)
class Graph:
    """Steps in plan order, each with its distinct dependencies and its dependents.

    `deps` keeps the order of the plan file, `dependents` is in plan order. A dependency that is
    no step of the plan is kept and never satisfied.
    """

    order: tuple[str, ...]
    position: Mapping[str, int]
    deps: Mapping[str, tuple[str, ...]]
    dependents: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, Sequence[str]]]) -> Graph:
        """The graph of (step id, its dependencies) pairs; of equal ids the first one counts."""
        deps: dict[str, tuple[str, ...]] = {}
        for step_id, needed in pairs:
            deps.setdefault(step_id, tuple(dict.fromkeys(needed)))
        dependents: dict[str, list[str]] = {step_id: [] for step_id in deps}
        for step_id, distinct in deps.items():
            for dep in distinct:
                if dep in dependents:
                    dependents[dep].append(step_id)
        return cls(
            order=tuple(deps),
            position={step_id: at for at, step_id in enumerate(deps)},
            deps=deps,
            dependents={step_id: tuple(below) for step_id, below in dependents.items()},
        )

    def in_order(self, step_ids: Iterable[str]) -> tuple[str, ...]:
        """Distinct steps of the plan, in plan order."""
        return tuple(sorted(set(step_ids), key=self.position.__getitem__))


def cycle(graph: Graph) -> tuple[str, ...] | None:
    """A cycle, each step needing the next, that starts and ends with the same step; else None.

    The first one a walk in plan order meets, from its step that is earliest in the plan.
    """
    done: set[str] = set()
    for root in graph.order:
        if root not in done:
            found = _cycle_from(graph, root, done)
            if found is not None:
                return found
    return None


def _cycle_from(graph: Graph, root: str, done: set[str]) -> tuple[str, ...] | None:
    path: dict[str, Iterator[str]] = {root: iter(graph.deps[root])}
    while path:
        step_id, deps = next(reversed(path.items()))
        dep = next(deps, None)
        if dep is None:
            done.add(step_id)
            path.popitem()
        elif dep in path:
            return _rotated(graph, list(path), dep)
        elif dep not in done and dep in graph.deps:
            path[dep] = iter(graph.deps[dep])
    return None


def _rotated(graph: Graph, path: list[str], closes: str) -> tuple[str, ...]:
    loop = path[path.index(closes) :]
    start = loop.index(min(loop, key=graph.position.__getitem__))
    return (*loop[start:], *loop[:start], loop[start])


class Scheduler:
    """Hands out each step once, when all it needs is satisfied, earliest in plan order first."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._waiting = {step_id: len(deps) for step_id, deps in graph.deps.items()}
        self._runnable = [
            graph.position[step] for step, count in self._waiting.items() if not count
        ]
        self._satisfied: set[str] = set()
        self._removed: set[str] = set()
        heapify(self._runnable)

    def next(self) -> str | None:
        """Take the runnable step that is earliest in plan order; None when nothing can run."""
        while self._runnable:
            step_id = self._graph.order[heappop(self._runnable)]
            if step_id not in self._removed:
                return step_id
        return None

    def satisfied(self, step_id: str) -> None:
        """Say that a step succeeded or was reused; saying it again changes nothing."""
        if step_id in self._satisfied:
            return
        self._satisfied.add(step_id)
        for dependent in self._graph.dependents[step_id]:
            self._waiting[dependent] -= 1
            if not self._waiting[dependent]:
                heappush(self._runnable, self._graph.position[dependent])

    def removed(self, step_ids: Iterable[str]) -> None:
        """Say that steps are not to be handed out any more, because they are blocked."""
        self._removed.update(step_ids)


@dataclass(frozen=True)
class Blockers:
    """Why a step is blocked (5.5), each in plan order."""

    direct: tuple[str, ...]
    ancestors: tuple[str, ...]


def newly_blocked(graph: Graph, failed: str, outcomes: Mapping[str, str]) -> tuple[str, ...]:
    """Every transitive dependent of a failed step that is not blocked yet, in plan order."""
    found: set[str] = set()
    left = [failed]
    while left:
        for dependent in graph.dependents[left.pop()]:
            if dependent not in found and outcomes.get(dependent) != BLOCKED:
                found.add(dependent)
                left.append(dependent)
    return graph.in_order(found)


def direct_blockers(graph: Graph, outcomes: Mapping[str, str], step_id: str) -> tuple[str, ...]:
    """The step's own dependencies that failed or are blocked, in plan order."""
    return graph.in_order(
        dep for dep in graph.deps[step_id] if outcomes.get(dep) in (FAILED, BLOCKED)
    )


def failed_ancestors(graph: Graph, outcomes: Mapping[str, str], step_id: str) -> tuple[str, ...]:
    """Failed steps that reach it along a path of blocked steps only, in plan order."""
    return blockers(graph, outcomes, [step_id])[step_id].ancestors


def blockers(
    graph: Graph, outcomes: Mapping[str, str], step_ids: Iterable[str]
) -> dict[str, Blockers]:
    """Both kinds of blockers of several steps, in the order given.

    Visits each blocked step above them a fixed number of times; where paths join, their failed
    steps are merged. The graph has no cycle.
    """
    known: dict[str, Blockers] = {}
    wanted = list(step_ids)
    left = list(reversed(wanted))
    while left:
        step_id = left.pop()
        if step_id in known:
            continue
        direct = direct_blockers(graph, outcomes, step_id)
        above = [dep for dep in direct if outcomes[dep] == BLOCKED and dep not in known]
        if above:
            left += [step_id, *above]
        else:
            known[step_id] = Blockers(direct, _ancestors(graph, outcomes, direct, known))
    return {step_id: known[step_id] for step_id in wanted}


def _ancestors(
    graph: Graph,
    outcomes: Mapping[str, str],
    direct: tuple[str, ...],
    known: Mapping[str, Blockers],
) -> tuple[str, ...]:
    through = [(dep,) if outcomes[dep] == FAILED else known[dep].ancestors for dep in direct]
    if len(through) == 1:
        return through[0]
    return graph.in_order(failed for ancestors in through for failed in ancestors)
