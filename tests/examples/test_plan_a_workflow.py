"""The tutorial `plan-a-workflow` over HTTP, and its picture; `tests/house` runs the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.house.page import Block, blocks, commands, run_command
from tests.house.repo import ROOT
from tests.infrastructure.http.live import Live
from tests.infrastructure.http.test_page import script

PAGE = ROOT / "docs" / "tutorial" / "plan-a-workflow.md"
IMAGE = ROOT / "docs" / "images" / "planned-and-observed.svg"


def parts() -> dict[str, list[Block]]:
    """The blocks of each section."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    return {section.split("\n")[0]: blocks(section) for section in sections}


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree like ours, where the page was followed to the end of its simulation."""
    tmp_path.chmod(0o700)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STATELOG_STORE", raising=False)
    sections = parts()
    for name in ("A workflow and a place to run it", "Compare algorithms", "Simulate the plan"):
        for block in sections[name]:
            for command in commands(block):
                run_command(*command)
    return tmp_path


def test_the_part_over_http_and_the_picture_are_true(planned: Path):
    """What `curl` prints is what the page shows, and the picture is the one that was drawn."""
    assert (planned / "try-1.svg").read_text() == IMAGE.read_text()
    steps = [step for b in parts()["Over HTTP"] if b.language == "console" for step in script(b)]
    assert len(steps) > 5
    text = "\n".join(f"{command}; echo; echo ---" for command, _ in steps)
    with Live(planned / "statelog.db") as live:
        text = text.replace("http://127.0.0.1:8080/akoflow-api", live.url.rstrip("/"))
        done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    printed = done.stdout.split("---\n")[:-1]
    for (command, pieces), output in zip(steps, printed, strict=True):
        for piece in pieces:
            assert piece in output, command
