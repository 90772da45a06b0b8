"""What is not needed is not loaded, and nothing reaches for the network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    *(
        "cryptography",
        "eventsourcing",
        "fastapi",
        "hypothesis",
        "orjson",
        "psycopg",
        "pytest",
        "rich",
        "sqlite_utils",
        "transitions",
    ),
    *("uvicorn", "yaml"),
}


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after running some code."""
    report = "import atexit, sys; atexit.register(lambda: print('\\n' + ' '.join(sys.modules)))\n"
    done = subprocess.run(
        [sys.executable, "-c", report + code], check=True, capture_output=True, text=True
    )
    return {module.split(".")[0] for module in done.stdout.splitlines()[-1].split()}


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_help_loads_nothing_heavy(argument: str):
    """`statelog --help` and `--version` answer without a store, a codec or a test framework."""
    code = f"import sys; sys.argv = ['statelog', {argument!r}]\n"
    loaded = loaded_by(code + "import runpy; runpy.run_module('statelog', run_name='__main__')")
    assert loaded & HEAVY == set()


def test_importing_the_package_loads_nothing_heavy():
    """`import statelog` costs the version only."""
    assert loaded_by("import statelog") & HEAVY == set()
    assert "orjson" in loaded_by("import orjson")


def reached(command: list[str], folder: Path) -> list[str]:
    """Every internet socket that a command and its children opened, as strace shows it."""
    assert shutil.which("strace"), "install it: sudo apt-get install -y strace"
    trace = folder / "trace"
    subprocess.run(
        ["strace", "-f", "-qq", "-e", "trace=network", "-o", trace, *command],
        check=True,
        cwd=folder,
        capture_output=True,
    )
    return re.findall(r".*\bAF_INET.*", trace.read_text())


@pytest.mark.servers
def test_a_run_reaches_no_network(tmp_path: Path):
    """Running a plan opens no internet socket, as SECURITY.md says."""
    tmp_path.chmod(0o700)
    (tmp_path / "steps.py").write_text(
        "from statelog.domain.execution import step\n\n\n@step\ndef nothing(context):\n    pass\n"
    )
    one = {"step_id": "one", "name": "One", "fn_ref": "steps:nothing", "params": {}}
    plan = {"plan_id": "quiet", "realm": "test", "steps": [one]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert reached([sys.executable, "-m", "statelog", "run", "plan.json"], tmp_path) == []


@pytest.mark.servers
def test_a_socket_would_be_seen(tmp_path: Path):
    """The check above sees a socket, also one of a child."""
    code = "import socket; socket.socket(socket.AF_INET).close()"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    assert reached([sys.executable, "-c", nested], tmp_path) != []
