"""`docs/how-to/operate.md` explains every line that the package logs, with its level."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.repo import ROOT

PAGE = ROOT / "docs" / "how-to" / "operate.md"
ROW = re.compile(r"^\| (DEBUG|INFO|WARNING|ERROR|) ?\| `([^`]+)` \|", re.M)
METHODS = ("debug", "info", "warning", "error", "exception", "critical", "log")
LOGGERS = ("log", "logger", "_log")
DOTS = "\N{HORIZONTAL ELLIPSIS}"


def logged() -> Iterator[tuple[str, str]]:
    """Level and template of each call of a logger; no level where it is computed."""
    for path in sorted((ROOT / "infrastructure").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in METHODS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in LOGGERS
                and node.args
            ):
                given = node.args[1 if node.func.attr == "log" else 0]
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield level(node.func.attr), re.sub(r"%[rsd]", DOTS, given.value)


def level(method: str) -> str:
    return {"exception": "ERROR", "log": ""}.get(method, method.upper())


def test_every_log_line_is_explained_and_every_explanation_has_its_line():
    """With the level that it is written at."""
    lines = set(logged())
    assert len(lines) > 20
    told = set(ROW.findall(PAGE.read_text(encoding="utf-8")))
    assert lines - told == set()
    assert told - lines == set()
