"""The service: HTTP, views kept up and a worker, each in a thread, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import uvicorn

from statelog.domain.errors import StatelogError, StoreError
from statelog.infrastructure.http.app import BASE_PATH, CLIENT_SECONDS, make_app
from statelog.infrastructure.http.endpoint import Services
from statelog.infrastructure.http.protocol import Patient
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.worker import JobWorker
from statelog.infrastructure.views import Views
from statelog.projections.planning import PLANNING_VIEWS
from statelog.projections.runs import RUN_VIEWS
from statelog.projections.workflows import WORKFLOW_VIEWS

log = logging.getLogger("statelog.http")

GRACE_S: Final = 5
BACKLOG: Final = 512
LONGEST_HEAD: Final = 64 * 1024
VIEWS: Final = (*WORKFLOW_VIEWS, *PLANNING_VIEWS, *RUN_VIEWS)
"""The views that endpoints read."""


@dataclass(frozen=True)
class Options:
    """How to serve. Without a token only programs of this machine are answered."""

    base_path: str = BASE_PATH
    token: str | None = None
    client_seconds: float = CLIENT_SECONDS


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one. Raises `OSError`."""
    family, kind, proto, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, proto)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def serve(
    journal: Journal,
    listener: socket.socket,
    stop: threading.Event,
    *,
    actor: str,
    options: Options,
    worker: JobWorker | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until `stop` is set, and end what is at work then.

    `ready` is called once requests are answered. Raises what ended a part of the service early,
    such as `StoreError`; then the others are stopped too.
    """
    with Views(journal, VIEWS) as views:
        parts = _Parts(stop)
        http = _Http(Services(journal, views, actor), options, listener, ready)
        keeping = _Keeping(journal, views)
        parts.start("http", http.run)
        parts.start("views", lambda: keeping.run(stop))
        if worker is not None:
            parts.start("worker", lambda: worker.run(stop))
        try:
            stop.wait()
        finally:
            stop.set()
            http.stop()
            keeping.wake()
            parts.join()


class _Parts:
    """Threads that stop together; the first error of any of them is raised in the end."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    def start(self, name: str, act: Callable[[], Any]) -> None:
        """Run a part in a thread."""

        def run() -> None:
            try:
                act()
            except BaseException as error:
                self._errors.append(error)
                if not isinstance(error, StatelogError):
                    log.exception("%s failed", name)
            finally:
                self._stop.set()

        thread = threading.Thread(target=run, name=name)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Wait for all of them. Raises what one of them raised."""
        for thread in self._threads:
            thread.join()
        for error in self._errors:
            raise error


class _Keeping:
    """Keeps the views at the end of the log, so that whoever reads them finds little to do."""

    def __init__(self, journal: Journal, views: Views) -> None:
        self._views = views
        self._journal = journal
        self._follower = journal.follow(after=journal.head())

    def run(self, stop: threading.Event) -> None:
        """Until it is stopped. Raises `StoreError` unless the file is only busy."""
        with self._follower as follower:
            while not stop.is_set():
                follower.position = self._journal.head()
                try:
                    self._views.catch_up()
                except StoreError as error:
                    if not error.retryable:
                        raise
                    follower.position = -1
                stop.wait(0.01)
                while not (stop.is_set() or follower.wait()):
                    pass

    def wake(self) -> None:
        """Let it look whether it is stopped."""
        self._follower.wake()


class _Http:
    """The server of requests, in a thread with a loop of its own."""

    def __init__(
        self,
        services: Services,
        options: Options,
        listener: socket.socket,
        ready: Callable[[], None],
    ) -> None:
        self._services, self._options = services, options
        self._listener, self._ready = listener, ready
        self._server: _Server | None = None
        self._stopped = False

    def run(self) -> None:
        """Serve until `stop`."""
        asyncio.run(self._serve())

    def stop(self) -> None:
        """Take no more requests; those at work have some seconds to end."""
        self._stopped = True
        if self._server is not None:
            self._server.should_exit = True

    async def _serve(self) -> None:
        options = self._options
        app, workers = make_app(
            self._services,
            base_path=options.base_path,
            token=options.token,
            seconds=options.client_seconds,
        )
        protocol = type("Connection", (Patient,), {"seconds": options.client_seconds})
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=max(1, int(options.client_seconds)),
            timeout_graceful_shutdown=GRACE_S,
            h11_max_incomplete_event_size=LONGEST_HEAD,
        )
        self._server = _Server(config, self._ready)
        self._server.should_exit = self._stopped
        try:
            await self._server.serve(sockets=[self._listener])
        finally:
            workers.close()


class _Server(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._ready()
