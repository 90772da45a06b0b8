"""A server of PostgreSQL for tests: Debian's programs, a folder of its own, a socket in it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.infrastructure.store.counter import child

INSTALL = "install it: sudo apt-get install -y postgresql"


def programs() -> Path:
    """Where `initdb` and `pg_ctl` are: those of the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    assert found, f"PostgreSQL's server is missing; {INSTALL}"
    return found[-1].parent


def _version(path: Path) -> int:
    return int(path.parts[-3])


class Server:
    """One cluster, which is made here and is gone at the end.

    It does not wait for the disk: what is killed here are processes, and what they wrote stays.
    Its programs refuse to be root's; then they are run as `postgres`, which the package adds.
    """

    def __init__(self) -> None:
        self.bin = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="statelog-pg-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self._schemas = 0
        data = ("-D", str(self.folder / "data"))
        self.call("initdb", *data, "-A", "trust", "-U", "bob", "-E", "UTF8", "--no-sync")

    def call(self, program: str, *given: str) -> None:
        """Run one of the server's programs to its end."""
        with (self.folder / "out").open("ab") as out:
            done = subprocess.run(
                [str(self.bin / program), *given],
                check=False,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=90,
                **self._as,
            )
        assert done.returncode == 0, (self.folder / "out").read_text()[-2000:]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-c listen_addresses='' -k {self.folder} -c max_connections=200 -c fsync=off"
        log = str(self.folder / "log")
        self.call(
            "pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-o", options, "-w", "start"
        )

    def stop(self, how: str = "fast") -> None:
        """Stop it: `fast`, or `immediate` as a power cut of the server alone would."""
        self.call("pg_ctl", "-D", str(self.folder / "data"), "-m", how, "-w", "stop")

    def url(self, database: str, **more: str) -> str:
        """The URL of a database."""
        asked = "".join(f"&{name}={value}" for name, value in more.items())
        return f"postgresql://bob@/{database}?host={self.folder}{asked}"

    def admin(self) -> psycopg.Connection[Any]:
        """A session of the superuser."""
        return psycopg.connect(self.url("postgres"), autocommit=True)

    def place(self) -> str:
        """The URL of a new schema, which is room for a store."""
        self._schemas += 1
        name = f"s{self._schemas}"
        with self.admin() as db:
            db.execute(f"CREATE SCHEMA {name}")
        return self.url("postgres", options=f"-csearch_path%3D{name}")

    def backends(self) -> list[int]:
        """Pids of the server's processes at work for clients."""
        with self.admin() as db:
            sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            pids = [pid for (pid,) in db.execute(f"{sql} AND pid <> pg_backend_pid()")]
        return pids

    def kill(self, pid: int) -> None:
        """End a process of this server without a warning, as the kernel short of memory would."""
        assert (self.folder / "data").stat().st_uid == Path(f"/proc/{pid}").stat().st_uid
        os.kill(pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it answers again."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.admin().close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def remove(self) -> None:
        """Leave nothing of it."""
        shutil.rmtree(self.folder)


@contextmanager
def started(code: str, *given: object) -> Iterator[subprocess.Popen[str]]:
    """A process, killed at the end if it is still there."""
    with child(code, *given) as process:
        try:
            yield process
        finally:
            process.kill()
