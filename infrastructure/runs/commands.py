"""What an activity's definition says to run, and what a runtime is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statelog.domain.errors import Invalid
from statelog.domain.runs.events import Placed
from statelog.domain.workflows.workflow import Activity, Command
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.port import Ref, Spec
from statelog.infrastructure.runs.outputs import expected


def argv(command: Command) -> tuple[str, ...]:
    """The words of a command: entry point, executable and arguments, as far as they are given.

    Nothing goes through a shell unless the command names one. Raises `Invalid`.
    """
    named = (command.entrypoint, command.executable)
    words = (*(word for word in named if word), *command.arguments)
    if not words or not words[0]:
        raise Invalid("command", "names neither an entrypoint nor an executable")
    for word in words:
        if "\0" in word:
            raise Invalid("command", "has a NUL character in a word")
    return words


def spec(activity: Activity, ref: Ref, folder: RunFolder, where: Placed) -> Spec:
    """What to start for an activity. Raises `Invalid` for a definition that nothing can start."""
    command = activity.command
    expected(activity.metadata)
    return Spec(
        ref,
        where.resource_id,
        where.runtime_id,
        attempt=1,
        argv=argv(command),
        environment=_environment(command.environment),
        workspace=folder.workspace(activity.id),
        directory=_directory(command.working_directory),
        timeout_seconds=activity.policy.timeout_seconds,
        image=command.image,
    )


def recorded(spec: Spec) -> dict[str, Any]:
    """A command as its handle keeps it, without the values of its variables: they may be secret."""
    return {
        "argv": list(spec.argv),
        "directory": spec.directory or ".",
        "environment": sorted(spec.environment),
        "timeoutSeconds": spec.timeout_seconds,
    }


def _environment(given: Mapping[str, Any]) -> dict[str, str]:
    for name, value in given.items():
        if not name or "=" in name or "\0" in name or "\0" in str(value):
            raise Invalid("command.environment", f"{name!r} is no variable")
    return {name: str(value) for name, value in given.items()}


def _directory(given: str) -> str:
    """A place below the workspace; the paths of containers mean nothing on a machine."""
    if given.startswith("/") or ".." in given.split("/") or "\0" in given:
        why = "is a place below the workspace: relative, without `..`"
        raise Invalid("command.workingDirectory", why)
    return given
