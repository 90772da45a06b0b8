"""`docs/reference/cli.md` names every command and option there is, and none there is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from statelog.domain.execution.endings import Resolution
from statelog.infrastructure.cli.app import app
from tests.house.repo import ROOT

PAGE = ROOT / "docs" / "reference" / "cli.md"
SECTION = re.compile(r"^#{2,3} `(statelog[a-z -]*)`$", re.M)
OPTION = re.compile(r"`(-{1,2}[a-z][a-z-]*)")


def tree(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command and group with what is typed to get there."""
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from tree(command, f"{path} {name}")


def sections() -> dict[str, str]:
    """What the page says of each command."""
    text = PAGE.read_text(encoding="utf-8")
    _, *parts = SECTION.split(text)
    return {
        name: re.split(r"^## ", body, flags=re.M)[0]
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def options(command: click.Command) -> set[str]:
    return {
        name for param in command.params if param.param_type_name == "option" for name in param.opts
    }


COMMANDS = dict(tree(app, "statelog"))
GLOBAL = {"--store", "--json", "--actor"}


def test_every_command_has_a_section_and_every_section_a_command():
    """The page is the tree."""
    assert set(sections()) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_told(name: str):
    """And no option is told that the command does not have."""
    own = options(COMMANDS[name]) - GLOBAL
    told = set(OPTION.findall(sections()[name]))
    if isinstance(COMMANDS[name], click.Group):
        return
    assert own <= told
    rest = {option for command in COMMANDS.values() for option in options(command)}
    assert told <= rest | {"--help", "--version"}
    rows = re.findall(r"^\| ((?:`-[^|]+)+) \|", sections()[name], re.M)
    assert {option for row in rows for option in OPTION.findall(row)} <= own


def test_the_global_options_are_told_and_taken_everywhere():
    """Before the command, after the group, after the command."""
    text = PAGE.read_text(encoding="utf-8").split("## Global options")[1].split("\n## ")[0]
    assert options(app) >= GLOBAL
    assert options(app) | {"-h", "--help"} <= set(OPTION.findall(text)) | {"-h"}
    assert all(options(command) >= GLOBAL for command in COMMANDS.values())


@pytest.mark.parametrize("name", ["statelog", *COMMANDS])
def test_every_help_has_an_example(name: str):
    """`--help` exits 0 and shows how the command is typed."""
    for option in ("--help", "-h"):
        done = CliRunner().invoke(app, [*name.split()[1:], option], prog_name="statelog")
        assert done.exit_code == 0
        assert "Example" in done.stdout
        example = done.stdout.split("Example")[1]
        assert name in example


def test_every_resolution_is_told():
    """What `run` may answer."""
    told = sections()["statelog run"]
    assert [each.value for each in Resolution if f"`{each.value}`" not in told] == []
