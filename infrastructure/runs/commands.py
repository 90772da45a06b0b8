"""What an activity's definition says to run, and what a runtime is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.runs.events import Placed
from statelog.domain.workflows.resources import Runtime
from statelog.domain.workflows.workflow import Activity, Command
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.port import Ref, Spec
from statelog.infrastructure.runs.outputs import expected

PASS_ENVIRONMENT: Final = "passEnvironment"


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


def spec(activity: Activity, ref: Ref, folder: RunFolder, where: Placed, runtime: Runtime) -> Spec:
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
        pass_on=_passed_on(runtime),
    )


def recorded(spec: Spec) -> dict[str, Any]:
    """A command as its handle keeps it, without the values of its variables: they may be secret."""
    return {
        "argv": list(spec.argv),
        "directory": spec.directory or ".",
        "environment": sorted(spec.environment),
        "timeoutSeconds": spec.timeout_seconds,
    }


def _passed_on(runtime: Runtime) -> tuple[str, ...]:
    """Variables of the worker that the runtime's configuration names."""
    named = runtime.configuration.get(PASS_ENVIRONMENT, ())
    listed = isinstance(named, Sequence) and not isinstance(named, str)
    if not listed or not all(isinstance(each, str) and each for each in named):
        why = "is a list of names of variables"
        raise Invalid(f"runtimes.{runtime.id}.configuration.{PASS_ENVIRONMENT}", why)
    return tuple(named)


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
