"""Every block of the documentation runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import page as pages_that_run
from tests.house.repo import ROOT, name, pages


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a folder, which has the shipped examples when the page names them."""
    folder.chmod(0o700)
    if "docs/examples" in page.read_text(encoding="utf-8"):
        shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
    return subprocess.run(
        [sys.executable, "-W", "error", pages_that_run.__file__, page],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if not key.startswith("STATELOG_")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )


RUNNING = [
    page
    for page in pages()
    if any(block.runs for block in pages_that_run.blocks(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("page", RUNNING, ids=name)
def test_every_block_runs(page: Path, tmp_path: Path):
    """A page's Python runs in order, its tests pass, its commands print what it shows."""
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nassert 1 + 1 == 3\n```\n", "page.md"),
        ("```python\ndef test_sums():\n    assert 1 + 1 == 3\n```\n", "1 failed"),
        ("```console\n$ statelog --no-such-option\n```\n", "exit"),
        ("```console\n$ python -m statelog --version\nno such line\n```\n", "did not print"),
        ("```console\n$ pytest none.py\n```\n", "exit 4"),
    ],
    ids=["python", "test", "exit code", "output", "pytest"],
)
def test_a_block_that_fails_is_found(text: str, message: str, tmp_path: Path):
    """A page that is wrong fails, and the message says where."""
    page = tmp_path / "page.md"
    page.write_text(text)
    done = run(page, tmp_path)
    assert done.returncode != 0
    assert message in done.stdout


def test_a_page_that_is_right_passes(tmp_path: Path):
    """Blocks share one namespace, write the files they name, and may show an exit code."""
    page = tmp_path / "page.md"
    page.write_text(
        "```python file=given.py\nANSWER = 42\n```\n"
        "```python\nfrom given import ANSWER\n```\n"
        "```python\ndef test_shared():\n    assert ANSWER == 42\n```\n"
        "```console\n$ statelog --no-such-option  # exit 2\n...\n$ rm -r anything\n```\n"
        "```text\nnot run\n```\n"
    )
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
