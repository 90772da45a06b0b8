"""What a command is told by name: views, positions, and Python objects as `module:NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_views import all_views

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal
    from statelog.projections.projection import Projection

Load = Callable[[str, str], Any]
"""(field, `module:NAME`) -> the object. Raises `Invalid` naming the field."""

PATHS: Final = click.option(
    "--path",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Where modules are found (default: the current folder). Repeatable.",
)
NOW: Final = "now"


@contextmanager
def loader(folders: Sequence[Path]) -> Iterator[Load]:
    """Imports from these folders (default: the current one), else what is installed."""
    from statelog.domain.errors import Invalid
    from statelog.domain.execution.findings import Unresolved, text_of
    from statelog.infrastructure.execution.imports import StepModules

    with StepModules(folders or [Path()]) as modules:

        def load(field: str, reference: str) -> Any:
            module, _, name = reference.partition(":")
            if not (module and name.isidentifier()):
                raise Invalid(field, f"{reference!r} is not module:NAME")
            found = modules(module, name)
            if isinstance(found, Unresolved) and not found.module_loaded:
                found = _installed(module, name, found)
            if isinstance(found, Unresolved):
                raise Invalid(field, f"{reference} cannot be imported: {text_of(found.error)}")
            return found.value

        yield load


def _installed(module: str, name: str, missed: Any) -> Any:
    """An object of a module that is no file of ours; what was missed when it is not there."""
    from importlib import import_module

    from statelog.domain.execution.findings import Resolved, Unresolved

    error = missed.error
    if not (isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]):
        return missed
    try:
        return Resolved(getattr(import_module(module), name))
    except Exception as error:
        return Unresolved(error, module_loaded=True)


def projection(load: Load, field: str, name: str) -> Projection[Any]:
    """The view of that name, or the one that `module:NAME` is. Raises `NotFound`, `Invalid`."""
    from statelog.domain.errors import Invalid, NotFound
    from statelog.projections.projection import Projection

    if ":" not in name:
        for view in all_views():
            if view.name == name:
                return view
        raise NotFound("view", name)
    found = load(field, name)
    if not isinstance(found, Projection):
        raise Invalid(field, f"{name} is no Projection but of type {type(found).__name__}")
    return found


def position(journal: Journal, field: str, text: str) -> int:
    """The position that a position, an ISO-8601 time or `now` means. Raises `Invalid`.

    A time means the last event that is not later; without a zone it is UTC, as everything that is
    printed.
    """
    from datetime import UTC, datetime

    from statelog.domain.errors import Invalid

    head = journal.head()
    if text == NOW:
        return head
    if text.isascii() and text.isdigit():
        if int(text) > head:
            raise Invalid(field, f"the log ends at position {head}, before {text}")
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(
            field, f"{text!r} is no position, time such as 2026-01-31T09:30:00Z, or `now`"
        ) from None
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    micros = since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
    return journal.position_at(micros)
