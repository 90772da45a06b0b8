"""A store with a server and workers that are killed, a client that goes on, and what must hold."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from statelog.domain.queue.job import JOB, JobStatus, keyed_id
from statelog.infrastructure.audit.conformance import audit
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.port import RUN_ID
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.views import Views
from tests.domain.runs.bundles import golden
from tests.house.repo import ROOT
from tests.infrastructure.http.asking import own, real
from tests.infrastructure.planning.lab import Lab
from tests.infrastructure.runs.place import lives

LEASE_S = 0.5
SOON_S = 60.0
ENDED = ("completed", "failed", "cancelled")
COMMAND = "echo x >> started-$STATELOG_ACTIVITY_ID; (setsid sleep 1000 &) ; sleep 0.2"


class Nursery:
    """Where processes come from."""

    def __init__(self) -> None:
        words = (sys.executable, "-m", "tests.infrastructure.http.crash.nursery")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(words, cwd=ROOT, **pipes)

    def start(self, *words: Any, out: Path, err: Path) -> int:
        """Start a command; its process id."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        asked = {"words": [*map(str, words)], "out": str(out), "err": str(err)}
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        return int(stdout.readline())

    def close(self) -> None:
        """Start nothing more."""
        self._process.communicate(timeout=30)


class Scene:
    """One store, the processes that work on it, and what a client was promised."""

    def __init__(self, folder: Path, nursery: Nursery, seed: int) -> None:
        folder.chmod(0o700)
        self.folder, self.nursery = folder, nursery
        self.store = folder / "s.db"
        self.work_root = folder / "work"
        self.chance, self.choices = random.Random(seed), random.Random(seed)
        self.mark = f"k{seed}-{os.getpid()}"
        self.sessions: list[str] = []
        self.simulated: list[str] = []
        self.real: list[str] = []
        self.asked = 0
        self.unknown = 0
        self.server = self.worker = 0
        self.address = ("", 0)
        with Journal(self.store) as journal:
            Lab(journal)

    # processes

    def start_server(self) -> None:
        """A server with a worker, on a port of its own; returns when it answers."""
        out = self.folder / f"out-{time.monotonic_ns()}"
        self.server = self._start("serve", "--port", "0", "--json", out=out)
        deadline = time.monotonic() + SOON_S
        while not (out.exists() and (text := out.read_text()).endswith("\n")):
            assert lives(self.server), self.errors()
            assert time.monotonic() < deadline, self.errors()
            time.sleep(0.005)
        parts = urlsplit(json.loads(text)["url"])
        self.address, self.base = (str(parts.hostname), int(parts.port or 0)), parts.path

    def start_worker(self) -> None:
        """A worker without HTTP."""
        self.worker = self._start("worker", out=self.folder / "worker-out")

    def _start(self, *words: str, out: Path) -> int:
        more = ("--lease", LEASE_S, "--work-root", self.work_root)
        args = ("--store", self.store, *words, *more)
        return self.nursery.start(*args, out=out, err=self.folder / "errors")

    def kill(self, pid: int) -> None:
        """Kill one of ours, and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + SOON_S
        while lives(pid):
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def errors(self) -> str:
        """What the processes said."""
        return (self.folder / "errors").read_text()[-4000:]

    # the client

    @contextmanager
    def client(self) -> Iterator[None]:
        """A client that goes on asking; what it finds wrong is raised at the end."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as thread:
            asking = thread.submit(self._go_on_asking, stop)
            try:
                yield
            finally:
                stop.set()
            asking.result()

    def _go_on_asking(self, stop: threading.Event) -> None:
        pauses = random.Random(self.mark)
        while not stop.wait(pauses.uniform(0.0, 0.05)):
            before = self.unknown
            self.ask()
            if self.unknown > before:
                stop.wait(0.1)

    def ask(self) -> None:
        """Ask for something new; what is answered with 202 is a promise."""
        self.asked += 1
        id = f"{self.mark}-{self.asked}"
        kind = self.choices.choices(("session", "simulated", "real", "cancel"), (4, 4, 1, 1))[0]
        if kind == "session":
            algorithms = [{"id": each} for each in ("heft", "cpop", "moheft")]
            ids = {
                "workflowVersionId": "chain-v1",
                "executionScopeId": "lab",
                "networkTopologyId": "wire",
            }
            self._promised(
                self.sessions, id, "planning-sessions/", {"id": id, "algorithms": algorithms, **ids}
            )
        elif kind == "simulated":
            self._promised(self.simulated, id, "execution-runs/", own(golden(), id))
        elif kind == "real" and len(self.real) < 4:
            request = real(id, COMMAND, COMMAND, edges=(("a", "b"),))
            self._promised(self.real, id, "execution-runs/", request)
        elif self.sessions:
            path = f"planning-sessions/{self.choices.choice(self.sessions)}/cancel/"
            assert self._post(path, None) in (204, 409, None)

    def _promised(self, where: list[str], id: str, path: str, document: Any) -> None:
        status = self._post(path, document)
        assert status in (202, None), status
        if status == 202:
            where.append(id)

    def _post(self, path: str, document: Any) -> int | None:
        """The status of a POST, None when the server died meanwhile."""
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        try:
            body = None if document is None else json.dumps(document)
            sent = {"Content-Type": "application/json"}
            connection.request("POST", f"{self.base}{path}", body, sent)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            self.unknown += 1
            return None
        finally:
            connection.close()

    # what must hold

    def finish(self) -> None:
        """Let what is there work until no job is left."""
        with Journal(self.store) as journal:
            queue = Queue(journal)
            deadline = time.monotonic() + SOON_S
            while left := queue.jobs():
                assert time.monotonic() < deadline, f"{left}\n{self.errors()}"
                time.sleep(0.05)

    def check(self) -> dict[str, int]:
        """No promise is broken, nothing runs, the log breaks no rule, and views are the log's."""
        with Journal(self.store) as journal, Views(journal, all_views()) as views:
            self._check_sessions(journal)
            done = self._check_runs(journal)
            violations = audit(journal, RULEBOOKS).violations
            assert not violations, violations
            different = [str(each) for each in views.verify()]
            assert not different, different
            assert most_running(journal) <= 1
        assert marked(f"{RUN_ID}={self.mark}-") == []
        return done

    def _check_sessions(self, journal: Journal) -> None:
        sessions = Lab(journal).sessions
        every = {each["id"] for each in sessions.all()}
        assert set(self.sessions) <= every
        for id in every:
            page = sessions.show(id)
            assert page["session"]["status"] in ENDED
            assert {run["status"] for run in page["algorithmRuns"]} <= set(ENDED)

    def _check_runs(self, journal: Journal) -> dict[str, int]:
        runs, done = Runs(journal), {"completed": 0, "failed": 0, "none": 0}
        for id in [*self.real, *self.simulated]:
            job = journal.load(JOB, keyed_id(f"execution-run:{id}"))
            assert job.version > 0, f"the job of {id} is lost"
            found = runs.load(id) if _began(journal, id) else None
            if found is None:
                assert job.state.status is JobStatus.FAILED
                done["none"] += 1
                continue
            assert found.state.ended
            done[found.state.status.value] += 1
            names = [each.name for each in journal.history(f"run/{id}")]
            assert names.count("runs.run.started") == 1
            assert names.count("runs.handle.starting") == len(found.state.handles)
        for id in self.real:
            for activity in "ab":
                workspace = RunFolder(self.work_root, id).workspace(activity)
                file = workspace / f"started-{activity}"
                assert not file.exists() or file.read_text() == "x\n"
        return done


def marked(start: str) -> list[int]:
    """Living processes with a variable of their environment that starts so."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            variables = (folder / "environ").read_bytes().split(b"\0")
            if any(each.startswith(start.encode()) for each in variables) and lives(
                int(folder.name)
            ):
                found.append(int(folder.name))
    return found


def _began(journal: Journal, id: str) -> bool:
    return next(iter(journal.history(f"run/{id}")), None) is not None


def most_running(journal: Journal) -> int:
    """How many sessions were running at once at most."""
    running: set[str] = set()
    most = 0
    for recorded in journal.history("session"):
        word = recorded.name.removeprefix("planning.session.")
        if word == "started":
            running.add(recorded.stream)
        elif word in ("requeued", "completed", "failed", "cancelled"):
            running.discard(recorded.stream)
        most = max(most, len(running))
    return most


@contextmanager
def scene(folder: Path, seed: int) -> Iterator[Scene]:
    """A scene whose processes are ended at the end, and whose commands are too."""
    nursery = Nursery()
    made = Scene(folder, nursery, seed)
    try:
        yield made
    finally:
        for pid in (made.server, made.worker):
            if pid and lives(pid):
                made.kill(pid)
        for pid in marked(f"{RUN_ID}={made.mark}-"):
            os.kill(pid, signal.SIGKILL)
        nursery.close()
