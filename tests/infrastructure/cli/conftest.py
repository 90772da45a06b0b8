"""The desk of every test here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infrastructure.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A fresh desk, where nothing is set in the environment."""
    for name in ("STATELOG_STORE", "STATELOG_WORK_ROOT", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)
