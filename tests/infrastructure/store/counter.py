"""The counter of the contract, for tests in this folder and their child processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from statelog.infrastructure.testing.contracts import COUNTER, add, start, stop
from tests.house.repo import ROOT

__all__ = ["COUNTER", "add", "child", "run", "start", "stop"]

PRELUDE = f"""
import os, sys, signal, time
sys.path.insert(0, {str(ROOT)!r})
from statelog.domain import *
from statelog.infrastructure import Journal
from statelog.infrastructure.testing.contracts import COUNTER, add, start, stop
"""


def child(code: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A process that runs some code with a journal's names imported."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path("/"),
        **options,
    )


def run(code: str, *arguments: object, **options: Any) -> str:
    """What such a process prints; it must end well."""
    process = child(code, *arguments, **options)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
    return printed.strip()
