"""`statelog serve`: the HTTP API."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path
from typing import Final

import click

from statelog.infrastructure.cli.common import FAILED, OK, USAGE, Settings, command
from statelog.infrastructure.cli.options import LOG_FORMAT, VERBOSE, WORK_ROOT, Seconds
from statelog.infrastructure.cli.output import emit, of_system, show, tell
from statelog.infrastructure.cli.signals import ending

EXAMPLES: Final = """
\b
Examples:
  statelog serve
  statelog serve --store lab.db --port 0 --json
  statelog serve --host 0.0.0.0 --token-file token --log-format json
"""


def add_to(group: click.Group) -> None:
    """Register the command."""

    @command(group, "serve", epilog=EXAMPLES)
    @click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
    @click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8080,
        show_default=True,
        help="On which port; 0 is any free one.",
    )
    @click.option(
        "--base-path",
        default="/akoflow-api",
        show_default=True,
        metavar="PATH",
        help="What every path begins with; / for nothing.",
    )
    @click.option(
        "--token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="A file with the bearer token that clients need; a must beyond this machine.",
    )
    @click.option("--no-worker", is_flag=True, help="Leave the jobs to `statelog worker`.")
    @click.option(
        "--concurrency",
        type=click.IntRange(min=1, max=1000),
        metavar="N",
        help="How many jobs are at work at once (default: 8).",
    )
    @click.option(
        "--lease",
        type=Seconds(min=0.1, max=86400),
        metavar="SECONDS",
        help="How long a job stays with a worker that is not heard of (default: 30).",
    )
    @click.option(
        "--client-timeout",
        type=Seconds(min=0.1, max=3600),
        default=20.0,
        show_default=True,
        metavar="SECONDS",
        help="How long a client may take for its headers, or for more of its body.",
    )
    @WORK_ROOT
    @LOG_FORMAT
    @VERBOSE
    def serve_api(
        settings: Settings,
        *,
        host: str,
        port: int,
        base_path: str,
        token_file: Path | None,
        no_worker: bool,
        concurrency: int | None,
        lease: float | None,
        client_timeout: float,
        work_root: Path | None,
        log_format: str,
        verbose: bool,
    ) -> int:
        """Answer the HTTP API, and do the jobs of the queue, until it is stopped.

        One line on stdout says when it is ready. SIGTERM or Ctrl-C lets requests end, stops what is
        at work, gives it back to the queue and ends with exit code 0; once more ends it at once.
        """
        missing = _missing()
        if missing:
            tell(f"error: serve needs {missing}: pip install 'statelog[http]'")
            return USAGE
        from statelog.infrastructure.cli.handlers import job_worker
        from statelog.infrastructure.execution.workdir import work_root as root_of
        from statelog.infrastructure.http import guard
        from statelog.infrastructure.http.server import Options, serve
        from statelog.infrastructure.logs import logged

        base = _base_path(base_path)
        token = _token(token_file)
        guard.check_listening(host, port, token)
        listener = _listener(host, port)
        if listener is None:
            return FAILED
        stop = threading.Event()
        level = "DEBUG" if verbose else "INFO"
        with listener, logged(log_format, level), settings.journal(create=True) as journal:
            _writable(settings, read_only=journal.read_only)
            root = root_of(settings.store_path, work_root, os.environ).absolute()
            worker = None
            if not no_worker:
                limits = {"concurrency": concurrency, "lease_seconds": lease}
                worker = job_worker(journal, root, settings.who, **limits)  # type: ignore[arg-type]
            with ending(stop):
                serve(
                    journal,
                    listener,
                    stop,
                    actor=settings.who,
                    options=Options(base, token, client_timeout),
                    worker=worker,
                    ready=lambda: _ready(settings, listener, base),
                )
        return OK


def _missing() -> str:
    """The package of the extra that is not there; "" when all are."""
    from importlib.util import find_spec

    return next((name for name in ("fastapi", "uvicorn", "yaml") if not find_spec(name)), "")


def _base_path(given: str) -> str:
    """What paths begin with: nothing, or parts that each begin with a slash."""
    from statelog.domain.errors import Invalid

    base = given.rstrip("/")
    plain = all(c.isascii() and (c.isalnum() or c in "-._~/") for c in base)
    if base and not (base.startswith("/") and plain and "//" not in base):
        raise Invalid("--base-path", f"{given!r} is not a path such as /akoflow-api")
    return base


def _token(path: Path | None) -> str | None:
    from statelog.infrastructure.http.guard import read_token

    if path is None:
        return None
    token = read_token(path)
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        tell(f"warning: others can read {path}; chmod 600 it")
    return token


def _listener(host: str, port: int) -> socket.socket | None:
    from statelog.infrastructure.http.server import listen

    try:
        return listen(host, port)
    except OSError as error:
        tell(f"error: cannot listen on {host} port {port}: {of_system(error)}")
        return None


def _writable(settings: Settings, *, read_only: bool) -> None:
    from statelog.domain.errors import StoreError

    if read_only:
        raise StoreError("read-only", f"{settings.named} cannot be written")


def _ready(settings: Settings, listener: socket.socket, base: str) -> None:
    """The one line on stdout."""
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}{base}/" if ":" in host else f"http://{host}:{port}{base}/"
    if settings.as_json:
        emit({"url": url, "host": host, "port": port})
    else:
        show(f"listening on {url}")
