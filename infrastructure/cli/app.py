"""The command tree."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from statelog import __version__
from statelog.infrastructure.cli import (
    daemon,
    execution,
    lifecycles,
    log,
    plan_commands,
    plan_reading,
    plan_settle,
    run,
    serve,
    session,
    store,
    views,
    watch,
    worker,
    workflow,
)
from statelog.infrastructure.cli.common import (
    FAILED,
    INTERRUPTED,
    OK,
    Group,
    global_options,
    help_alone,
    misused,
)
from statelog.infrastructure.cli.output import of_system, stdout_is_gone, tell

EXAMPLES = """
\b
Examples:
  statelog run plan.json                    run a plan and record its result
  statelog daemon --path steps              run whatever is due, as a service
  statelog plan status reads-qc             where its newest attempt is
  statelog plan watch reads-qc              the same as it changes
  statelog plan explain reads-qc report     why a step is in its state
  statelog log history reads-qc             every event of it
  statelog views verify                     every view equals its rebuild
"""


class App(Group):
    """The root: whatever ends a command ends the process with one line and a code."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Run a command line and exit. Raises `SystemExit`."""
        given = list(sys.argv[1:] if args is None else args)
        with suppress(AttributeError):
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            code = super().main(given, *more, **{**extra, "standalone_mode": False})
        except click.Abort:
            tell("interrupted")
            code = INTERRUPTED
        except click.ClickException as error:
            code = misused(given, error)
        except OSError as error:
            tell(f"error: {of_system(error)}")
            stdout_is_gone()
            code = FAILED
        sys.exit(code or OK)


@click.group(
    cls=App,
    epilog=EXAMPLES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="statelog", message="%(prog)s %(version)s")
@global_options
@click.pass_context
def app(context: click.Context) -> None:
    """Event-sourced state machines, and plans executed on them."""
    help_alone(context)


run.add_to(app)
daemon.add_to(app)
worker.add_to(app)
serve.add_to(app)
workflow.add_to(app)
session.add_to(app)
execution.add_to(app)
plans = plan_commands.add_to(app)
plan_settle.add_to(plans)
plan_reading.add_to(plans)
watch.add_to(plans)
log.add_to(app)
views.add_to(app)
lifecycles.add_to(app)
store.add_to(app)


def main() -> int:
    """Run the command line. Raises `SystemExit` with its exit code."""
    app.main(prog_name="statelog")
    return OK
