"""The algorithms on measured workflows: what they promise, how near to the least, how fast.

The files are those of `data/wfinstances` in the directory that STATELOG_SHARED names, or in
`../shared` beside the tree; without them a small workflow of our own takes their place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.problem import Problem, resolve
from statelog.domain.runs.simulate import simulate
from statelog.domain.workflows.complete import completed
from statelog.domain.workflows.durations import duration, fits, profile_table
from statelog.domain.workflows.graph import predecessors, topological_order
from statelog.domain.workflows.platform import FOUR_MACHINES
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.wfformat import read_wfformat
from tests.domain.planning.graphs import SHAPES, problem
from tests.house.repo import ROOT

FILES = Path(os.environ.get("STATELOG_SHARED", ROOT.parent / "shared")) / "data" / "wfinstances"
NAMES = {
    "bacass-dirt02-001.json": "bacass",
    "blast-chameleon-small-001.json": "blast",
    "epigenomics-chameleon-hep-1seq-100k-001.json": "epigenomics",
    "helloworld-forkjoin-10-chameleon.json": "fork-join",
    "montage-chameleon-2mass-005d-001.json": "montage",
    "rnaseq-dirt02-001.json": "rnaseq",
}
SIZES = (100, 1_000, 10_000)


@dataclass(frozen=True)
class Row:
    """One plan of one algorithm: seconds, money, and milliseconds of planning.

    `gap` is the share by which the makespan is above the critical path of fastest durations.
    """

    workflow: str
    activities: int
    algorithm: str
    makespan: float
    simulated: float
    cost: float
    gap: float
    planning_ms: float


@dataclass(frozen=True)
class Growth:
    """HEFT on one kind of generated graph: milliseconds at each size."""

    shape: str
    planning_ms: tuple[float, ...]


def measure(*, quick: bool) -> list[Row]:
    """Every algorithm on every file; of MOHEFT the fastest and the cheapest plan."""
    rows = []
    for name, document in documents():
        given = planned(document, name)
        bound = least(given)
        for algorithm in ALGORITHMS:
            taken, plans = _timed(algorithm, given, 1 if quick else 5)
            for label, plan in _ends(algorithm, plans):
                rows.append(_row(name, label, given, plan, bound, taken))
    return rows


def growth(*, quick: bool) -> list[Growth]:
    """HEFT on graphs of every size, the last one only in a full run."""
    sizes = SIZES[:-1] if quick else SIZES
    return [
        Growth(
            shape,
            tuple(_timed("heft", problem(make(n)), 1 if quick else 3)[0] * 1000 for n in sizes),
        )
        for shape, make in SHAPES.items()
    ]


def documents() -> Iterator[tuple[str, Any]]:
    """(name, WfFormat document) of each file that is there, else of the small one."""
    found = [FILES / file for file in NAMES if (FILES / file).exists()]
    for path in found:
        yield NAMES[path.name], json.loads(path.read_text(encoding="utf-8"))
    if not found:
        yield "small", small()


def small() -> Any:
    """A WfFormat document of our own: one task, eight side by side, one that joins them."""
    middle = [f"work-{n}" for n in range(8)]
    ends = [("split", [], middle), *((m, ["split"], ["join"]) for m in middle)]
    tasks = [
        {
            "name": id,
            "id": id,
            "parents": parents,
            "children": children,
            "inputFiles": [f"{parent}.out" for parent in parents],
            "outputFiles": [f"{id}.out"],
        }
        for id, parents, children in [*ends, ("join", middle, [])]
    ]
    runs = [
        {"id": task["id"], "runtimeInSeconds": 5.0 + at * 3, "machines": ["one"]}
        for at, task in enumerate(tasks)
    ]
    files = [{"id": f"{task['id']}.out", "sizeInBytes": 20_000_000} for task in tasks]
    return {
        "name": "small",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks, "files": files},
            "execution": {
                "makespanInSeconds": 60.0,
                "executedAt": "2024-01-01T00:00:00Z",
                "tasks": runs,
                "machines": [{"nodeName": "one", "cpu": {"coreCount": 8}}],
            },
        },
    }


def planned(document: Any, name: str) -> Problem:
    """The problem of planning a document on the built-in machines."""
    made = read_wfformat(document, name, FOUR_MACHINES)
    environments = [completed(made.environment), completed(made.measured)]
    return resolve(made.workflow, made.scope, made.topology, environments)


def least(given: Problem) -> float:
    """Seconds of the critical path, each activity where it is fastest, nothing else taking time."""
    table = profile_table(given.profiles)
    activities = {activity.id: activity for activity in given.workflow.activities}
    above = predecessors(given.workflow)
    done: dict[str, float] = {}
    for id in topological_order(given.workflow):
        here = activities[id]
        fastest = min(duration(here, r, table) for r in given.schedulable if fits(here, r))
        done[id] = fastest + max((done[before] for before in above[id]), default=0.0)
    return max(done.values())


def _timed(algorithm: str, given: Problem, times: int) -> tuple[float, list[SchedulePlan]]:
    taken = []
    for _ in range(times):
        start = perf_counter()
        plans = list(ALGORITHMS[algorithm].plans(given, {}, lambda fraction: None))
        taken.append(perf_counter() - start)
    return median(taken), plans


def _ends(algorithm: str, plans: Sequence[SchedulePlan]) -> Iterator[tuple[str, SchedulePlan]]:
    if not ALGORITHMS[algorithm].multiple:
        yield algorithm, plans[0]
    else:
        yield f"{algorithm}, fastest of {len(plans)}", plans[0]
        yield f"{algorithm}, cheapest", plans[-1]


def _row(
    name: str, label: str, given: Problem, plan: SchedulePlan, bound: float, taken: float
) -> Row:
    trace = simulate(plan, given.workflow, given.resources, given.topology, given.profiles)
    makespan = plan.predicted.makespan_seconds
    return Row(
        workflow=name,
        activities=len(plan.assignments),
        algorithm=label,
        makespan=makespan,
        simulated=trace.makespan_seconds,
        cost=plan.predicted.cost,
        gap=makespan / bound - 1,
        planning_ms=taken * 1000,
    )


HEAD = ("workflow", "activities", "algorithm")
FIGURES = ("makespan", "simulated", "cost", "gap", "planning")


def table(rows: Iterable[Row]) -> str:
    """The rows as aligned text."""
    return _aligned([(*HEAD, *FIGURES), *(_cells(row) for row in rows)], len(HEAD))


def growth_table(rows: Sequence[Growth]) -> str:
    """HEFT's milliseconds by shape and size as aligned text."""
    sizes = SIZES[: max(len(row.planning_ms) for row in rows)]
    body = [(row.shape, *(f"{ms:.0f} ms" for ms in row.planning_ms)) for row in rows]
    return _aligned([("heft on", *(f"{size:,}" for size in sizes)), *body], 1)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.workflow,
        f"{row.activities:,}",
        row.algorithm,
        f"{row.makespan:.1f} s",
        f"{row.simulated:.1f} s",
        f"{row.cost:.4f}",
        f"{row.gap:+.1%}",
        f"{row.planning_ms:.1f} ms",
    )


def _aligned(cells: Sequence[Sequence[str]], left: int) -> str:
    """Aligned columns, the first so many to the left and figures to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )
