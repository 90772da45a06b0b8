"""Where things are in the working tree."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("domain", "projections", "infrastructure")


def pyproject() -> dict[str, Any]:
    """The project file."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def sources(*folders: str) -> list[Path]:
    """Every Python file below folders of the tree."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def pages() -> list[Path]:
    """Every Markdown page of the tree."""
    found = [*ROOT.glob("*.md"), *(ROOT / "adr").rglob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(found)


def name(path: Path) -> str:
    """A path as the tree knows it, for messages and test ids."""
    return path.relative_to(ROOT).as_posix()
