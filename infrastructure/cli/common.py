"""What all commands share: global options, the store, and errors as one line and an exit code."""

from __future__ import annotations

import errno
import functools
import getpass
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import click

from statelog.infrastructure.cli.output import emit, of_system, stdout_is_gone, tell
from statelog.infrastructure.store.postgres_address import is_url, shown

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.views import Views
    from statelog.projections.projection import Projection

F = TypeVar("F", bound=Callable[..., Any])

STORE: Final = "STATELOG_STORE"
"""The environment variable that names the store."""

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_HINTS: Final = {
    "store": "name another with --store, or make one: `statelog run` and `workflow import` do",
    "plan": "`statelog plan list` shows those there are",
    "attempt": "`statelog plan attempts` shows those there are",
    "step": "`statelog plan status` shows those there are",
    "run": "`statelog execution list` shows those that a worker has started",
    "schedule plan": "`statelog session select` stores the plan of a candidate",
    "session": "`statelog session list` shows those there are",
    "workflow": "`statelog workflow list` shows those there are",
    "view": "`statelog views list` shows those there are",
}


@dataclass
class Settings:
    """The global options, given before or after the command; the later one wins.

    `code` is what the process exits with when its output has nowhere to go; `results` is where
    results are printed when that is not stdout any more.
    """

    store: str | None = None
    as_json: bool = False
    actor: str | None = None
    code: int = OK
    results: TextIO | None = None

    @property
    def store_path(self) -> Path:
        """The store's file; for one in PostgreSQL, `./statelog`, beside which its work is."""
        return Path("statelog") if isinstance(self.place, str) else self.place

    @property
    def place(self) -> Path | str:
        """The store: as given, else of the environment, else `./statelog.db`.

        A path, or the URL of one in PostgreSQL.
        """
        return _place(self.store or os.environ.get(STORE) or "statelog.db")

    @property
    def named(self) -> str:
        """The store, for people: its path, or its URL without a password."""
        return shown(self.place) if isinstance(self.place, str) else str(self.place)

    @property
    def who(self) -> str:
        """Who acts: as given, else the login name."""
        return _login_name() if self.actor is None else self.actor

    @contextmanager
    def journal(self, *, create: bool = False) -> Iterator[Journal]:
        """The journal of the store. Raises `NotFound` when it is not there, unless `create`."""
        from statelog.domain.errors import NotFound
        from statelog.infrastructure.journal import Journal

        path = self.place
        if isinstance(path, Path) and not (create or (os.path.lexists(path) and _has_bytes(path))):
            raise NotFound("store", str(path))
        with warnings.catch_warnings(record=True) as caught:
            journal = Journal(path, create=create or isinstance(path, Path))
        for warning in caught:
            tell(f"warning: {warning.message}")
        with journal:
            yield journal

    @contextmanager
    def views(
        self, journal: Journal, projections: Iterable[Projection[Any]] | None = None
    ) -> Iterator[Views]:
        """Views over a journal: those a command reads (default: those of plan execution)."""
        from statelog.infrastructure.views import Views

        if projections is None:
            from statelog.projections.execution import EXECUTION_VIEWS

            projections = EXECUTION_VIEWS
        with Views(journal, projections) as views:
            yield views


def _place(store: str) -> Path | str:
    return store if is_url(store) else Path(store)


def _has_bytes(path: Path) -> bool:
    """What is no plain file is left to the journal, which says what is wrong with it."""
    return path.is_symlink() or not path.is_file() or path.stat().st_size > 0


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid-{os.getuid()}"


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value not in (None, False):
            setattr(context.ensure_object(Settings), name, value)

    return keep


_OPTIONS = (
    click.option(
        "--store",
        metavar="PATH|URL",
        callback=_keep("store"),
        expose_value=False,
        help="The store's file, or its postgresql:// URL (default: $STATELOG_STORE, else "
        "./statelog.db).",
    ),
    click.option(
        "--json",
        is_flag=True,
        callback=_keep("as_json"),
        expose_value=False,
        help="Print JSON on stdout; logs and progress go to stderr in any case.",
    ),
    click.option(
        "--actor",
        metavar="NAME",
        callback=_keep("actor"),
        expose_value=False,
        help="Who does this, as the log will say (default: the login name).",
    ),
)


def global_options(command: F) -> F:
    """Add --store, --json and --actor."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class Group(click.Group):
    """Commands in the order in which people need them."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, as they were registered."""
        return list(self.commands)


def help_alone(context: click.Context) -> None:
    """Print help when no command was named; no colours where they are not wanted."""
    context.ensure_object(Settings)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def group(parent: click.Group, name: str, help: str, epilog: str) -> click.Group:
    """Register a group of commands, which takes the global options too."""
    callback = global_options(click.pass_context(help_alone))
    made = parent.group(name, cls=Group, help=help, epilog=epilog, invoke_without_command=True)
    return made(callback)


def command(group: click.Group, name: str, **attrs: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a command with the global options.

    It gets `Settings` as its first argument and answers its exit code, nothing for 0. Errors
    raised on purpose, and those of the system, become one line and an exit code.
    """

    def register(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        @functools.wraps(function)
        def call(context: click.Context, /, *args: Any, **kwargs: Any) -> int:
            settings = context.ensure_object(Settings)
            return _guarded(settings, functools.partial(function, settings, *args, **kwargs))

        return group.command(name, **attrs)(global_options(call))

    return register


def _guarded(settings: Settings, act: Callable[[], int | None]) -> int:
    from statelog.domain.errors import Invalid, StatelogError

    try:
        return act() or OK
    except StatelogError as error:
        return fail(settings, error, USAGE if isinstance(error, Invalid) else FAILED)
    except KeyboardInterrupt:
        tell("interrupted")
        return INTERRUPTED
    except OSError as error:
        return _system(settings, error)


def _system(settings: Settings, error: OSError) -> int:
    """A reader of stdout that went away is no failure of the work."""
    if error.errno == errno.EPIPE:
        stdout_is_gone()
        return settings.code
    return fail(settings, error, FAILED)


def fail(settings: Settings, error: Exception, code: int) -> int:
    """Say what is wrong, as JSON too if that was asked for; the code."""
    tell(f"error: {_said(error)}")
    if settings.as_json:
        told = {k: v for k, v in vars(error).items() if isinstance(v, str | int)}
        _last_words(
            {"type": type(error).__name__, "message": _said(error), **told}, settings.results
        )
    return code


def misused(args: list[str], error: click.ClickException) -> int:
    """Say in one line what is wrong with a command line; the exit code."""
    context = getattr(error, "ctx", None)
    advice = f" (see `{context.command_path} --help`)" if context else ""
    message = f"{error.format_message().rstrip('.')}{advice}"
    tell(f"error: {message}")
    if "--json" in args:
        _last_words({"type": type(error).__name__, "message": message})
    return error.exit_code


def _last_words(error: dict[str, Any], file: TextIO | None = None) -> None:
    try:
        emit({"error": error}, file=file)
    except OSError:
        stdout_is_gone()


def _said(error: Exception) -> str:
    from statelog.domain.errors import Conflict, NotFound

    if isinstance(error, OSError):
        return of_system(error)
    if isinstance(error, NotFound):
        hint = "; ".join(getattr(error, "__notes__", ())) or _HINTS.get(error.kind)
        return f"{error}; {hint}" if hint else str(error)
    if isinstance(error, Conflict):
        return f"{error}; look at it again, then give its revision with --rev"
    return str(error)
