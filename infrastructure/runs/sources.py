"""Where the workspaces of activities are that a run keeps from the one it recovers (2.8, P19)."""

from __future__ import annotations

from pathlib import Path

from statelog.domain.runs.run import RUN, Run
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.folders import RunFolder


def workspace_of(journal: Journal, root: Path, run_id: str, activity_id: str) -> Path:
    """The workspace an activity worked in, for this run or one that it was kept from before."""
    seen = set()
    while run_id not in seen:
        seen.add(run_id)
        task = journal.load(RUN, run_id).state.tasks.get(activity_id)
        if task is None or not task.kept_from:
            break
        run_id = task.kept_from
    return RunFolder(root, run_id).workspace(activity_id)


def kept_workspaces(journal: Journal, root: Path, run: Run) -> dict[str, Path]:
    """The workspace of each activity that a run keeps."""
    return {
        activity_id: workspace_of(journal, root, task.kept_from, activity_id)
        for activity_id, task in run.tasks.items()
        if task.kept_from
    }
