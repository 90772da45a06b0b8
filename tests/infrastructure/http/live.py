"""A real server in a process of its own on a free port of this machine, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from statelog.infrastructure.journal import Journal
from tests.house.repo import ROOT

JSON, YAML = "application/json", "application/yaml"
SOON_S = 20.0


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == JSON
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an error, which is all that there is in it."""
        assert self.status >= 400
        assert set(self.json) == {"error"}
        message: str = self.json["error"]
        return message


class Live:
    """A server of a store."""

    def __init__(self, store: Path, *words: Any, token: str | None = None, **given: Any) -> None:
        self.store, self.token = store, token
        store.parent.chmod(0o700)
        self.log = store.with_name(f"{store.name}.log")
        command = ("serve", "--port", "0", "--json", *map(str, words))
        args = [sys.executable, "-W", "error", "-m", "statelog", "--store", str(store), *command]
        env = {**os.environ, "STATELOG_STORE": "", **given.pop("env", {})}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                args, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=ROOT, **given
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.ready = json.loads(line)
        self.url = self.ready["url"]
        parts = urlsplit(self.url)
        self.address = (str(parts.hostname), int(parts.port or 0))
        self.base = parts.path.rstrip("/")

    def __call__(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        data: bytes | None = None,
        media: str | None = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request below the base path, and read the answer."""
        body = data if document is None else json.dumps(document).encode()
        sent = {} if body is None or media is None else {"Content-Type": media}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request(method, f"{self.base}{path}", body, {**sent, **(headers or {})})
            return _answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The document of a GET that succeeds."""
        found = self("GET", path)
        assert found.status == 200, found.body
        return found.json

    def post(self, path: str, document: Any = None, status: int = 201, **given: Any) -> Any:
        """The document of a POST that has this status."""
        found = self("POST", path, document, **given)
        assert found.status == status, (found.status, found.body)
        return found.json if found.body else None

    def raw(self, data: bytes, seconds: float = SOON_S) -> bytes:
        """Send bytes, and read until the server closes the connection."""
        with socket.create_connection(self.address, timeout=seconds) as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    @property
    def host(self) -> str:
        """What the `Host` header says."""
        return f"{self.address[0]}:{self.address[1]}"

    def journal(self) -> Journal:
        """The same log, seen by another process."""
        return Journal(self.store)

    def kept(self) -> tuple[int, int]:
        """How many events and refusals there are."""
        with Journal(self.store, read_only=True) as journal:
            return journal.head(), len(journal.refusals())

    def memory(self) -> int:
        """The most bytes of memory that the server had at once."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Tell it to stop, and wait for it: its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def close(self) -> None:
        """End it if it is still there."""
        self.stop()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _answer(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def soon(condition: Callable[[], Any], why: str = "") -> Any:
    """Wait until something is true, and answer it."""
    deadline = time.monotonic() + SOON_S
    while not (found := condition()):
        assert time.monotonic() < deadline, why or "did not come to pass"
        time.sleep(0.02)
    return found
