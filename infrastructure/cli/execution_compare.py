"""`statelog execution`: a plan beside what its run did, as a table and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.execution_reading import RUN_ID, Document, number, reading
from statelog.infrastructure.cli.output import emit, show, write_file
from statelog.infrastructure.cli.tables import facts, table

if TYPE_CHECKING:
    from statelog.infrastructure.runs.runs import Runs


def add_to(execution: click.Group) -> None:
    """Register the commands."""
    _compare(execution)
    _gantt(execution)


def _compare(execution: click.Group) -> None:
    @command(execution, "compare", epilog="Example: statelog execution compare run-1")
    @RUN_ID
    def compare(settings: Settings, *, run_id: str) -> None:
        """Compare what the plan of a run promised with what the run did.

        Times are seconds from the run's beginning; those marked with * are on the critical path.
        """
        with reading(settings) as runs:
            found = runs.comparison(run_id)
            measured = _measured(runs, found["workflowVersionId"])
        if settings.as_json:
            emit(found if measured is None else {**found, "measuredMakespanSeconds": measured})
            return
        makespan, cost = found["makespanSeconds"], found["cost"]
        show(
            facts(
                {
                    "run": run_id,
                    "plan": found["schedulePlanId"],
                    "status": found["status"],
                    "makespan": f"{_both(makespan)}, {found['makespanCounts']}",
                    "measured": None if measured is None else f"{measured:.6g}, {_ELSEWHERE}",
                    "cost": _both(cost),
                    "critical path": " -> ".join(s["activityId"] for s in found["criticalPath"]),
                }
            )
        )
        critical = {step["activityId"] for step in found["criticalPath"]}
        show("\n" + table(_COMPARED, [_compared(each, critical) for each in found["activities"]]))


_ELSEWHERE: Final = "where the imported workflow was recorded"


def _measured(runs: Runs, workflow_id: str) -> float | None:
    """The makespan that came with an imported workflow (P20)."""
    from statelog.domain.errors import NotFound
    from statelog.infrastructure.workflows.definitions import Definitions

    try:
        metadata = Definitions(runs.journal).workflow(workflow_id).metadata
    except NotFound:
        return None
    found = metadata.get("measuredMakespanSeconds")
    return float(found) if isinstance(found, int | float) else None


_COMPARED: Final = (
    *("activity", "status", "planned on", "ran on", "start", "planned", "end", "planned"),
    *("runtime", "planned", "cost", "planned"),
)


def _compared(entry: Document, critical: set[str]) -> list[Any]:
    where, name = entry["resourceId"], entry["activityId"]
    cells: list[Any] = [f"{name} *" if name in critical else name, entry["status"]]
    cells += [where["planned"], where.get("observed")]
    for part in ("startSeconds", "finishSeconds", "runtimeSeconds", "cost"):
        cells += [number(entry[part].get("observed")), number(entry[part].get("planned"))]
    return cells


def _both(part: Document) -> str:
    """What was seen, what was planned, and by how much they differ."""
    planned, seen = part.get("planned"), part.get("observed")
    if seen is None:
        return "not known" if planned is None else f"not known, planned {planned:.6g}"
    if planned is None:
        return f"{seen:.6g}, not planned"
    return f"{seen:.6g}, planned {planned:.6g} ({part['delta']:+.6g})"


def _gantt(execution: click.Group) -> None:
    @command(execution, "gantt", epilog="Example: statelog execution gantt run-1 -o run-1.svg")
    @RUN_ID
    @click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE.svg",
        help="Where to draw it.",
    )
    def draw(settings: Settings, *, run_id: str, output: Path) -> None:
        """Draw each lane of a run: what was planned, and below it what was observed."""
        from statelog.projections.runs.gantt import gantt

        with reading(settings) as runs:
            found = runs.comparison(run_id)
        write_file(output, gantt(found))
        if settings.as_json:
            emit({"runId": run_id, "file": str(output)})
        else:
            show(f"drawn into {output}")
