"""`statelog workflow`: importing workflows with what to plan them on, and looking at them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import Settings, command, group
from statelog.infrastructure.cli.output import emit, show, tell
from statelog.infrastructure.cli.tables import facts, table

if TYPE_CHECKING:
    from statelog.domain.workflows.workflow import Activity, WorkflowVersion
    from statelog.infrastructure.workflows.importing import Import

HELP: Final = "Import workflows, and look at those that are registered."
EXAMPLES: Final = """
\b
Examples:
  statelog workflow import pipeline.yaml
  statelog workflow import montage.json --format wfformat
  statelog workflow list
  statelog workflow show pipeline-v1 --portable
"""
_FORMATS: Final = ("portable", "wfformat")
_LISTED: Final = ("id", "name", "activityCount", "dependencyCount", "dataDependencyCount")
_FILE = click.Path(path_type=Path, readable=False)


def add_to(app: click.Group) -> None:
    """Register the group and its commands."""
    workflow = group(app, "workflow", HELP, EXAMPLES)
    _import(workflow)
    _show(workflow)
    _list(workflow)


def _import(workflow: click.Group) -> None:
    @command(workflow, "import", epilog=_IMPORT_EXAMPLES)
    @click.argument("file", type=_FILE)
    @click.option(
        "--format",
        "form",
        type=click.Choice(_FORMATS),
        help="What the file is (default: WfFormat when it has a schemaVersion).",
    )
    @click.option(
        "--resources",
        type=_FILE,
        metavar="BUNDLE",
        help="The environment to plan on, with its links (default for WfFormat: four machines).",
    )
    @click.option("--name", help="What to call a WfFormat workflow (default: the file's name).")
    def import_workflow(
        settings: Settings,
        *,
        file: Path,
        form: Any,
        resources: Path | None,
        name: str | None,
    ) -> None:
        """Register the workflow in FILE, and print the ids to create a session with.

        A portable workflow is YAML or JSON. A WfFormat 1.5 file brings its measured runtimes, file
        sizes and machines, and is registered with an environment, a scope and a topology. The same
        file again registers nothing.
        """
        from statelog.infrastructure.workflows.definitions import Definitions
        from statelog.infrastructure.workflows.importing import read_import

        found = read_import(file, form=form, name=name, resources=resources, tell=tell)
        for warning in found.warnings:
            tell(f"warning: {file}: {warning}")
        count = len(found.workflow.activities)
        if count >= _MANY:
            tell(f"registering {count} activities")
        with settings.journal(create=True) as journal:
            new = Definitions(journal).register(*found.records, actor=settings.who)
        _print_import(settings, found, new=new)


_MANY: Final = 1000
_IMPORT_EXAMPLES: Final = """
\b
Examples:
  statelog workflow import pipeline.yaml --resources cluster.yaml
  statelog workflow import montage.json --json | jq -r .executionScopeId
"""


def _print_import(settings: Settings, found: Import, *, new: bool) -> None:
    from statelog.domain.workflows.complete import completed

    workflow = completed(found.workflow)
    told = {
        **found.ids,
        "format": found.form,
        "definitionHash": workflow.definition_hash,
        "activityCount": len(workflow.activities),
        "registered": new,
        "warnings": list(found.warnings),
    }
    if settings.as_json:
        emit(told)
        return
    show(
        facts(
            {
                "workflow": workflow.id,
                "scope": told.get("executionScopeId"),
                "topology": told.get("networkTopologyId"),
                "environments": told.get("environmentVersionIds"),
                "activities": told["activityCount"],
                "registered": "now" if new else "already",
                "plan it": _next(workflow.id, None if found.scope is None else found.scope.id),
            }
        )
    )


def _next(workflow_id: str, scope_id: str | None) -> str:
    if scope_id is None:
        return "import it with --resources BUNDLE, or create a session in a scope that is there"
    return (
        f"statelog session create --workflow {workflow_id} --scope {scope_id} "
        "--algorithm heft --wait"
    )


def _show(workflow: click.Group) -> None:
    @command(workflow, "show", epilog="Example: statelog workflow show pipeline-v1")
    @click.argument("id", metavar="ID")
    @click.option("--portable", is_flag=True, help="As the portable YAML that could be imported.")
    def show_workflow(settings: Settings, *, id: str, portable: bool) -> None:
        """Show a workflow version: its activities, and what they wait for.

        With --json its document. With --portable it is YAML that can be imported again.
        """
        from statelog.domain.workflows import shape
        from statelog.infrastructure.workflows.definitions import Definitions

        with settings.journal() as journal:
            found = Definitions(journal).workflow(id)
        if portable:
            _print_portable(settings, found)
        elif settings.as_json:
            emit(shape.show(found))
        else:
            show(_described(found))


def _print_portable(settings: Settings, found: WorkflowVersion) -> None:
    from statelog.domain.workflows.portable_export import show_portable
    from statelog.infrastructure.documents import yaml_of

    document = show_portable(found)
    if settings.as_json:
        emit(document)
    else:
        show(yaml_of(document).rstrip("\n"))


def _described(found: WorkflowVersion) -> str:
    from statelog.domain.workflows.graph import bytes_between, edges, levels, predecessors

    before, sizes, depth = predecessors(found), bytes_between(found), levels(found)
    by_id = {activity.id: activity for activity in found.activities}
    head = facts(
        {
            "workflow": found.id,
            "name": found.name or None,
            "namespace": found.namespace or None,
            "hash": found.definition_hash,
            "activities": f"{len(found.activities)} in {len(depth)} levels",
            "edges": len(edges(found)),
            "data": f"{sum(sizes.values())} bytes on {len(sizes)} edges",
            "measured makespan": _seconds(found.metadata.get("measuredMakespanSeconds")),
        }
    )
    rows = [
        [number, id, *_row(by_id[id]), before[id]]
        for number, level in enumerate(depth)
        for id in level
    ]
    return f"{head}\n\n{table(('level', 'activity', 'mode', 'time', 'cores', 'after'), rows)}"


def _row(activity: Activity) -> tuple[Any, ...]:
    simulated = None if activity.simulation is None else activity.simulation.duration_seconds
    cores = activity.resources.cpu
    return activity.capabilities, _seconds(simulated), f"{cores:g}" if cores else None


def _seconds(value: Any) -> str | None:
    return f"{value:g} s" if isinstance(value, int | float) else None


def _list(workflow: click.Group) -> None:
    @command(workflow, "list", epilog="Example: statelog workflow list --json | jq -r .id")
    def list_workflows(settings: Settings) -> None:
        """List the workflow versions, the newest first. With --json one line a version."""
        from statelog.infrastructure.workflows.listing import newest_first
        from statelog.projections.workflows import WORKFLOW_VIEWS

        with settings.journal() as journal, settings.views(journal, WORKFLOW_VIEWS) as views:
            lines = newest_first(views, "workflow_versions")
        if settings.as_json:
            for line in lines:
                emit(line)
        elif lines:
            heads = ("workflow", "name", "activities", "control edges", "data edges")
            show(table(heads, [[line.get(key) for key in _LISTED] for line in lines]))
        else:
            show("no workflows")
