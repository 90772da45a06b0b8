"""What all commands share: global options, the store, output as text or JSON, and exit codes."""

from __future__ import annotations

import functools
import getpass
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.views import Views

F = TypeVar("F", bound=Callable[..., Any])

STORE: Final = "STATELOG_STORE"
"""The environment variable that names the store."""

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


@dataclass
class Settings:
    """The global options, given before or after the command; the later one wins."""

    store: Path | None = None
    as_json: bool = False
    actor: str | None = None

    @property
    def store_path(self) -> Path:
        """The store: as given, else of the environment, else `./statelog.db`."""
        return self.store or Path(os.environ.get(STORE) or "statelog.db")

    @property
    def who(self) -> str:
        """Who acts: as given, else the login name."""
        return self.actor or _login_name()

    @contextmanager
    def journal(self, *, create: bool = False) -> Iterator[Journal]:
        """The journal of the store. Raises `NotFound` when it is not there, unless `create`."""
        from statelog.domain.errors import NotFound
        from statelog.infrastructure.journal import Journal

        path = self.store_path
        if not create and not path.exists():
            raise NotFound("store", str(path))
        with Journal(path, read_only=not create and not os.access(path, os.W_OK)) as journal:
            yield journal

    @contextmanager
    def views(self, journal: Journal) -> Iterator[Views]:
        """The views of plan execution over a journal."""
        from statelog.infrastructure.views import Views
        from statelog.projections.execution import EXECUTION_VIEWS

        with Views(journal, EXECUTION_VIEWS) as views:
            yield views


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid-{os.getuid()}"


def _store(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        context.ensure_object(Settings).store = value


def _as_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Settings).as_json = True


def _actor(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(Settings).actor = value


_OPTIONS = (
    click.option(
        "--store",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_store,
        expose_value=False,
        help="The store's file (default: $STATELOG_STORE, else ./statelog.db).",
    ),
    click.option(
        "--json",
        is_flag=True,
        callback=_as_json,
        expose_value=False,
        help="Print JSON on stdout; logs and progress go to stderr in any case.",
    ),
    click.option(
        "--actor",
        metavar="NAME",
        callback=_actor,
        expose_value=False,
        help="Who does this, as the log will say (default: the login name).",
    ),
)


def global_options(command: F) -> F:
    """Add --store, --json and --actor."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def command(group: click.Group, name: str, **attrs: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a command with the global options; it gets `Settings` as its first argument.

    Its errors become one line on stderr and an exit code.
    """

    def register(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        @functools.wraps(function)
        def call(context: click.Context, /, *args: Any, **kwargs: Any) -> None:
            settings = context.ensure_object(Settings)
            with reported(settings):
                code = function(settings, *args, **kwargs)
            context.exit(code or OK)

        return group.command(name, **attrs)(global_options(call))

    return register


@contextmanager
def reported(settings: Settings) -> Iterator[None]:
    """Turn the errors raised on purpose into a message and an exit code."""
    from statelog.domain.errors import Invalid, StatelogError

    try:
        yield
    except StatelogError as error:
        fail(settings, error, USAGE if isinstance(error, Invalid) else FAILED)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(OK)


def fail(settings: Settings, error: Exception, code: int) -> None:
    """Say what is wrong, as JSON too if that was asked for, and exit."""
    if settings.as_json:
        told = {k: v for k, v in vars(error).items() if isinstance(v, str | int)}
        emit({"error": {"type": type(error).__name__, "message": str(error), **told}})
    click.echo(f"error: {error}", err=True)
    sys.exit(code)


def emit(value: Any) -> None:
    """Print one JSON value as a line."""
    click.echo(json.dumps(value, ensure_ascii=False, sort_keys=True))
