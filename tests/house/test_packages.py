"""The package is what the tree is."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import statelog
from tests.house.repo import LAYERS, ROOT, pyproject


def packages_of_the_tree() -> set[str]:
    inits = (path for layer in LAYERS for path in (ROOT / layer).rglob("__init__.py"))
    dotted = {".".join(("statelog", *init.parent.relative_to(ROOT).parts)) for init in inits}
    return (dotted - {"statelog.infrastructure.toplevel"}) | {"statelog"}


def test_the_package_list_is_the_tree():
    """A folder that is added and not listed would be missing from the wheel."""
    listed = pyproject()["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == packages_of_the_tree()


def test_every_folder_with_code_is_a_package():
    """A folder without `__init__.py` would be no package at all."""
    files = (path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
    bare = {path.parent for path in files if not (path.parent / "__init__.py").exists()}
    assert bare == set()


def test_type_checkers_see_every_layer():
    """The links below .types lead to the layers."""
    links = ROOT / ".types" / "statelog"
    for layer in LAYERS:
        assert (links / layer).resolve() == ROOT / layer
    for file in ("__init__.py", "__main__.py", "py.typed"):
        assert (links / file).resolve() == ROOT / "infrastructure" / "toplevel" / file


def test_the_version_is_said_once():
    """The installed metadata has the version that the code has."""
    assert importlib.metadata.version("statelog") == statelog.__version__
    assert "version" not in pyproject()["project"]


def test_every_declared_extra_is_part_of_all_or_dev():
    """`[all]` is every extra for users, `[dev]` is that and our own tools."""
    extras = pyproject()["project"]["optional-dependencies"]
    assert extras["all"] == [f"statelog[{','.join(sorted(set(extras) - {'all', 'dev'}))}]"]
    assert "statelog[all]" in extras["dev"]


@pytest.mark.long
def test_a_wheel_works_outside_the_tree(tmp_path: Path):
    """The built wheel holds every package and `py.typed`, and imports without the tree."""
    source = tmp_path / "source"
    for part in (*LAYERS, "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        source.mkdir(exist_ok=True)
        copy(ROOT / part, source / part)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("statelog-*.whl")
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "-t", site, wheel], check=True, cwd=tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    assert "statelog/py.typed" in names
    assert not [name for name in names if not name.startswith(("statelog/", "statelog-"))]
    listed = sorted(packages_of_the_tree())
    code = (
        "import importlib, sys\n"
        f"sys.path.insert(0, {str(site)!r})\n"
        f"for name in {listed!r}:\n"
        "    module = importlib.import_module(name)\n"
        f"    assert module.__file__.startswith({str(site)!r}), module.__file__\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
