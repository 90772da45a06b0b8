"""Imports point one way, and the pure layers stay pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.repo import LAYERS, ROOT, name, sources

IMPURE = {
    *("asyncio", "eventsourcing", "fcntl", "io", "logging", "orjson", "os", "random", "secrets"),
    *("shutil", "signal", "socket", "sqlite3", "sqlite_utils", "subprocess", "tempfile"),
    *("threading", "time", "uuid"),
}
THIRD_PARTY = {"domain/lifecycle.py": {"transitions"}}
CLOCK = {"now", "utcnow", "today"}
DOMAINS = {path.name for path in (ROOT / "domain").iterdir() if (path / "__init__.py").exists()}
DOORS = {"cli", "http", "toplevel"}
"""Folders of the infrastructure that put the others together."""
FRAMEWORK = {"testing": {"store"}, "audit": {"store"}, "exchange": {"store"}}
"""Contract suites hold every store to the file format; audits and exchanges see every row."""

LANGUAGE = {"workflows", "queue"}
"""Domains whose records two others speak of: a plan that was chosen is what a run applies."""
SPEAKERS = {"planning", "runs"}

PURE = sources("domain", "projections")
PRODUCT = sources(*LAYERS)


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module a file imports, and `module.name` of each imported name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def below(path: Path) -> tuple[str, str]:
    """The layer of a file, and its folder in that ("" for the root)."""
    layer, *rest = path.relative_to(ROOT).parts
    return layer, rest[0] if len(rest) > 1 else ""


def may_import(layer: str, folder: str, other_layer: str, other: str) -> bool:
    """Whether a file of one room may import from another."""
    if LAYERS.index(other_layer) > LAYERS.index(layer):
        return False
    if folder in DOORS or other in (folder, ""):
        return True
    if other in LANGUAGE and folder in SPEAKERS:
        return True
    if other in DOMAINS:
        return False
    if other in FRAMEWORK.get(folder, ()):
        return True
    return folder == "" or other_layer != layer


def wrong_imports(path: Path) -> list[str]:
    """Every import of a file of the product that points the wrong way."""
    layer, folder = below(path)
    wrong = []
    for module in imports(parse(path)):
        parts = module.split(".")
        if parts[0] != "statelog" or len(parts) < 2 or parts[1] not in LAYERS:
            continue
        named = parts[2] if len(parts) > 2 and (ROOT / parts[1] / parts[2]).is_dir() else ""
        if not may_import(layer, folder, parts[1], named):
            wrong.append(module)
    return wrong


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_imports_point_inwards(path: Path):
    """infrastructure -> projections -> domain; folders import the root, never each other."""
    assert wrong_imports(path) == []


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_the_product_does_not_import_its_tests(path: Path):
    """Nothing below the three layers needs `tests`."""
    assert [module for module in imports(parse(path)) if module.split(".")[0] == "tests"] == []


def test_no_bare_or_relative_import():
    """A bare `import domain` would load every module a second time."""
    found = [
        f"{name(path)}: {module}"
        for path in sources(*LAYERS, "tests", "docs")
        for module in imports(parse(path))
        if module.startswith(".") or module.split(".")[0] in LAYERS
    ]
    assert found == []


@pytest.mark.parametrize("path", PURE, ids=name)
def test_the_pure_layers_have_no_clock_no_chance_and_no_machine(path: Path):
    """Neither imports nor calls that could make two replays differ."""
    tree = parse(path)
    assert {module.split(".")[0] for module in imports(tree)} & IMPURE == set()
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    clocks = [
        call.attr for call in called if isinstance(call, ast.Attribute) and call.attr in CLOCK
    ]
    machine = [
        call.id for call in called if isinstance(call, ast.Name) and call.id in {"open", "print"}
    ]
    assert clocks + machine == []


@pytest.mark.parametrize("path", PURE, ids=name)
def test_the_pure_layers_need_the_standard_library_only(path: Path):
    """Except for the one file that builds the machine."""
    import sys

    used = {module.split(".")[0] for module in imports(parse(path))}
    foreign = used - set(sys.stdlib_module_names) - {"statelog"}
    assert foreign <= THIRD_PARTY.get(name(path), set())


def test_only_the_lifecycle_knows_transitions():
    """The machine is an implementation detail of one file."""
    users = {name(path) for path in PRODUCT if "transitions" in set(imports(parse(path)))}
    assert users <= {"domain/lifecycle.py"}


@pytest.mark.parametrize(
    ("room", "other", "allowed"),
    [
        (("domain", ""), ("projections", ""), False),
        (("domain", ""), ("domain", "execution"), False),
        (("projections", "execution"), ("domain", "execution"), True),
        (("projections", "execution"), ("infrastructure", ""), False),
        (("infrastructure", ""), ("infrastructure", "store"), True),
        (("infrastructure", ""), ("infrastructure", "execution"), False),
        (("infrastructure", "execution"), ("infrastructure", "store"), False),
        (("infrastructure", "execution"), ("infrastructure", ""), True),
        (("infrastructure", "testing"), ("domain", "execution"), False),
        (("infrastructure", "testing"), ("infrastructure", "store"), True),
        (("infrastructure", "store"), ("infrastructure", "testing"), False),
        (("infrastructure", "audit"), ("infrastructure", "store"), True),
        (("infrastructure", "audit"), ("infrastructure", "execution"), False),
        (("infrastructure", "exchange"), ("infrastructure", "store"), True),
        (("infrastructure", "exchange"), ("infrastructure", "audit"), False),
        (("infrastructure", "cli"), ("infrastructure", "execution"), True),
        (("domain", "planning"), ("domain", "workflows"), True),
        (("domain", "workflows"), ("domain", "planning"), False),
        (("domain", "runs"), ("domain", "planning"), False),
        (("infrastructure", "runs"), ("infrastructure", "queue"), True),
        (("domain", "execution"), ("domain", "workflows"), False),
    ],
)
def test_the_rule_itself(room: tuple[str, str], other: tuple[str, str], allowed: bool):
    """The rule refuses what it should: it is code too."""
    assert may_import(*room, *other) is allowed
