"""The command tree."""

from __future__ import annotations

import click

from statelog import __version__
from statelog.infrastructure.cli import run
from statelog.infrastructure.cli.common import OK, Settings, global_options

EXAMPLES = """
\b
Examples:
  statelog run plan.json                    run a plan and record its result
  statelog plan status reads-qc             where its newest attempt is
  statelog plan explain reads-qc report     why a step is in its state
  statelog log history reads-qc             every event of it
  statelog views verify                     every view equals its rebuild
"""


@click.group(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="statelog", message="%(prog)s %(version)s")
@global_options
@click.pass_context
def app(context: click.Context) -> None:
    """Event-sourced state machines, and plans executed on them."""
    context.ensure_object(Settings)


run.add_to(app)


def main() -> int:
    """Run the command line; the exit code. Raises `SystemExit` as click does."""
    app(prog_name="statelog", standalone_mode=True)
    return OK
