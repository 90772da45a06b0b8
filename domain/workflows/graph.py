"""The graph of a workflow: control and data dependencies are both ordering edges (3.2, P13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from statelog.domain.errors import Invalid
from statelog.domain.workflows.workflow import WorkflowVersion

Neighbours = dict[str, tuple[str, ...]]


def predecessors(workflow: WorkflowVersion) -> Neighbours:
    """What each activity waits for, ids sorted, each pair once.

    Raises `Invalid` for an activity that is given twice and for an edge to an unknown one.
    """
    return _neighbours(workflow, (pair[::-1] for pair in edges(workflow)))


def successors(workflow: WorkflowVersion) -> Neighbours:
    """What waits for each activity, ids sorted, each pair once. Raises as `predecessors` does."""
    return _neighbours(workflow, iter(edges(workflow)))


def _neighbours(workflow: WorkflowVersion, pairs: Iterator[tuple[str, str]]) -> Neighbours:
    found: dict[str, list[str]] = {activity.id: [] for activity in workflow.activities}
    for here, there in pairs:
        found[here].append(there)
    return {activity_id: tuple(sorted(ids)) for activity_id, ids in found.items()}


def edges(workflow: WorkflowVersion) -> tuple[tuple[str, str], ...]:
    """Distinct (producer, consumer) pairs, control before data. Raises as `predecessors` does."""
    known: set[str] = set()
    for at, activity in enumerate(workflow.activities):
        if activity.id in known:
            raise Invalid(f"activities[{at}].id", f"activity {activity.id!r} is given twice")
        known.add(activity.id)
    pairs: dict[tuple[str, str], None] = {}
    for field, activity_id, pair in _named(workflow):
        if activity_id not in known:
            raise Invalid(field, f"no activity {activity_id!r} in workflow {workflow.id!r}")
        pairs[pair] = None
    return tuple(pairs)


def _named(workflow: WorkflowVersion) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Each end of each edge: the field that names it, the activity, the edge."""
    for at, edge in enumerate(workflow.dependencies):
        pair = (edge.depends_on_activity_id, edge.activity_id)
        yield f"dependencies[{at}].dependsOnActivityId", pair[0], pair
        yield f"dependencies[{at}].activityId", pair[1], pair
    for at, data in enumerate(workflow.data_dependencies):
        pair = (data.producer_activity_id, data.consumer_activity_id)
        yield f"dataDependencies[{at}].producerActivityId", pair[0], pair
        yield f"dataDependencies[{at}].consumerActivityId", pair[1], pair


def bytes_between(workflow: WorkflowVersion) -> dict[tuple[str, str], int]:
    """Bytes of each (producer, consumer) pair that has data dependencies, summed."""
    sizes: dict[tuple[str, str], int] = {}
    for data in workflow.data_dependencies:
        pair = (data.producer_activity_id, data.consumer_activity_id)
        sizes[pair] = sizes.get(pair, 0) + data.size_bytes
    return sizes


def topological_order(workflow: WorkflowVersion) -> tuple[str, ...]:
    """Every activity after all it waits for; of those that are ready the smallest id first.

    Raises `Invalid` naming a cycle, or as `predecessors` does.
    """
    before = predecessors(workflow)
    after = successors(workflow)
    waiting = {activity_id: len(ids) for activity_id, ids in before.items()}
    ready = [activity_id for activity_id, count in waiting.items() if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready))
        for successor in after[order[-1]]:
            waiting[successor] -= 1
            if not waiting[successor]:
                heappush(ready, successor)
    if len(order) < len(before):
        raise Invalid("dependencies", f"cycle: {' -> '.join(_cycle(before, waiting))}")
    return tuple(order)


def _cycle(before: Mapping[str, tuple[str, ...]], waiting: Mapping[str, int]) -> list[str]:
    """A cycle in execution order, first and last activity the same."""
    here = min(activity_id for activity_id, count in waiting.items() if count)
    path: dict[str, None] = {}
    while here not in path:
        path[here] = None
        here = next(above for above in before[here] if waiting[above])
    seen = list(path)
    loop = seen[seen.index(here) :]
    return [here, *reversed(loop)]


def levels(workflow: WorkflowVersion) -> tuple[tuple[str, ...], ...]:
    """Activities by the longest path of edges above them, ids sorted. Raises as the order does."""
    before = predecessors(workflow)
    depth: dict[str, int] = {}
    for activity_id in topological_order(workflow):
        depth[activity_id] = 1 + max((depth[above] for above in before[activity_id]), default=-1)
    rows: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for activity_id, level in depth.items():
        rows[level].append(activity_id)
    return tuple(tuple(sorted(row)) for row in rows)
