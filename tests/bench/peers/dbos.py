"""DBOS on SQLite, in a virtual environment and a process of its own."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

VERSION = "3.4.0"
PACKAGES = (f"dbos=={VERSION}", "pysqlite3-binary")
"""DBOS needs SQLite 3.42 or later, which the second package brings."""

SCRIPT = Path(__file__).with_name("dbos_steps.py")
INSTALL_SECONDS = 180


class Unavailable(Exception):
    """DBOS cannot be measured here; says why."""


class Dbos:
    """A process that runs workflows of no-op steps when it is told to."""

    def __init__(self, cache: Path, database: Path) -> None:
        """Raises `Unavailable`."""
        python = installed(cache)
        self._process = subprocess.Popen(
            [python, "-I", SCRIPT, database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._answer() != "ready":
            raise Unavailable(f"DBOS does not start: {self._failed()}")

    def run(self, steps: int) -> float:
        """Seconds a step of one workflow."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        answer = self._answer()
        if not answer:
            raise RuntimeError(f"DBOS stopped: {self._failed()}")
        return float(answer) / steps

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _failed(self) -> str:
        self._process.kill()
        _out, text = self._process.communicate()
        return (text.strip().splitlines() or ["no message"])[-1]

    def close(self) -> None:
        """End the process."""
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def installed(cache: Path) -> Path:
    """The interpreter of an environment that has DBOS, made at first use. Raises `Unavailable`."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache / f"dbos-{VERSION}-py{version}"
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists():
        return python
    print(f"installing {' and '.join(PACKAGES)} in {folder} ...", file=sys.stderr)
    try:
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, *PACKAGES],
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        lines = [*(error.stderr or "").strip().splitlines(), "no message"]
        raise Unavailable(f"not installable: {lines[0]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"not installable: {error}") from error
    done.touch()
    return python
