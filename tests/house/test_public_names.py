"""The public names are those that `docs/reference/api.md` lists, and each says what it is."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.house.repo import LAYERS, ROOT, pyproject

PAGE = ROOT / "docs" / "reference" / "api.md"
HEADING = re.compile(r"^## `(statelog[\w.]*)`$", re.M)
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.M)


def documented() -> dict[str, dict[str, str]]:
    """For each package the page has: its names and what the page says of each."""
    _, *parts = HEADING.split(PAGE.read_text(encoding="utf-8"))
    return {
        package: dict(ROW.findall(text))
        for package, text in zip(parts[::2], parts[1::2], strict=True)
    }


PACKAGES = pyproject()["tool"]["setuptools"]["packages"]
NAMES = [(package, name) for package, names in documented().items() for name in names]


def test_every_package_with_public_names_is_documented():
    """`__all__` makes a package public, and the page knows each of them."""
    public = {name for name in PACKAGES if hasattr(importlib.import_module(name), "__all__")}
    assert public == set(documented())


@pytest.mark.parametrize("package", documented())
def test_the_public_names_are_those_of_the_page(package: str):
    """No name more and none less, and `__all__` is sorted so that it can be read."""
    names = importlib.import_module(package).__all__
    assert sorted(names) == sorted(documented()[package])


@pytest.mark.parametrize(("package", "name"), NAMES, ids=map(".".join, NAMES))
def test_every_public_name_has_a_docstring(package: str, name: str):
    """One sentence at least, and not the signature that a dataclass gives itself."""
    value = getattr(importlib.import_module(package), name)
    own = value if isinstance(value, type) or callable(value) else type(value)
    said = (vars(own) if isinstance(own, type) else {"__doc__": own.__doc__}).get("__doc__") or ""
    assert said.strip()
    assert not said.startswith(f"{name}(")


def test_every_module_says_what_it_is():
    """The first line of each file is the claim that the rest keeps."""
    files = (path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
    assert [path for path in files if not path.read_text(encoding="utf-8").startswith('"""')] == []
