"""`statelog serve`: how it starts, who it answers, how it stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from statelog.infrastructure.http.guard import is_loopback
from tests.domain.runs.bundles import golden
from tests.infrastructure.cli.desk import Desk
from tests.infrastructure.http.asking import own, real
from tests.infrastructure.http.live import Live, soon
from tests.infrastructure.runs.place import processes

TOKEN = "correct-horse"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server with a token, under another base path, on all addresses of this machine."""
    folder = tmp_path_factory.mktemp("guarded")
    token = folder / "token"
    token.write_text(f"  {TOKEN}\n")
    token.chmod(0o600)
    words = ("--host", "0.0.0.0", "--token-file", token, "--base-path", "/v1/", "--no-worker")
    with Live(folder / "s.db", *words, "--log-format", "json", token=TOKEN) as live:
        yield live


def test_it_says_that_it_is_ready(guarded: Live):
    """One line, with the port that it found."""
    assert set(guarded.ready) == {"url", "host", "port"}
    assert guarded.ready["port"] > 0
    assert guarded.base == "/v1"


def test_whoever_knows_the_token_is_answered(guarded: Live):
    """Under the base path."""
    assert guarded("GET", "/planning-algorithms/").status == 200
    assert guarded("GET", "/planning-sessions/x/").status == 404


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        TOKEN,
        "Bearer \u00e9",
    ],
)
def test_others_are_not(guarded: Live, given: str):
    """401 for every path and method, with a challenge, and nothing is stored."""
    before = guarded.kept()
    headers = {"Authorization": given.encode("latin-1")}
    for method, path in (
        ("GET", "/planning-algorithms/"),
        ("GET", "/nothing/"),
        ("GET", "/openapi.json"),
        ("POST", "/planning-sessions/"),
    ):
        refused = guarded(method, path, {} if method == "POST" else None, headers=headers)
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert "bearer" in refused.error
    assert guarded.kept() == before


def test_the_log_has_a_line_for_each_request(guarded: Live):
    """As JSON when it is asked for, and never the token."""
    guarded("GET", "/planning-sessions/to-be-found/")
    lines = [json.loads(line) for line in guarded.log.read_text().splitlines()]
    told = [line["message"] for line in lines if "to-be-found" in line["message"]]
    assert told[-1].startswith("GET /v1/planning-sessions/to-be-found/ 404 ")
    assert TOKEN not in guarded.log.read_text()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "10.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_without_a_token_only_this_machine_is_answered(idle: Live, headers: dict[str, str]):
    """403 for another name of this address, and for a page of another origin; nothing is kept."""
    before = idle.kept()
    assert idle("GET", "/planning-algorithms/", headers=headers).status == 403
    refused = idle("POST", "/planning-sessions/x/cancel/", headers=headers)
    assert refused.status == 403
    assert idle.kept() == before


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "127.1.2.3:80", "[::1]"])
def test_every_local_name_is_this_machine(idle: Live, host: str):
    """Whatever the port."""
    assert idle("GET", "/planning-algorithms/", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.1", False),
        ("fe80::1%eth0", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_what_is_loopback(address: str, local: bool):
    """Addresses of this machine alone."""
    assert is_loopback(address) is local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "no-such-host.invalid"])
def test_beyond_this_machine_it_needs_a_token(desk: Desk, host: str):
    """Exit code 2, and no store is made."""
    done = desk("serve", "--host", host, "--port", "0")
    assert done.code == 2
    assert "--token-file" in done.error
    assert not desk.store.exists()


@pytest.mark.parametrize("text", ["", "  \n", "two words", "\u00e9", "x" * 5000])
def test_a_token_file_without_a_token(desk: Desk, text: str):
    """Exit code 2."""
    done = desk("serve", "--token-file", desk.file(text, "token"))
    assert done.code == 2
    assert done.error.startswith("--token-file: ")
    assert desk("serve", "--token-file", desk.folder / "none").code == 2


@pytest.mark.parametrize("path", ["x", "/a b", "//x", "/x?y", "/\u00e9"])
def test_a_base_path_that_is_none(desk: Desk, path: str):
    """Exit code 2."""
    done = desk("serve", "--base-path", path)
    assert (done.code, done.error.partition(":")[0]) == (2, "--base-path")


def test_a_port_that_is_taken(desk: Desk):
    """Exit code 1, in one line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = desk("serve", "--port", taken.getsockname()[1])
    assert done.code == 1
    assert "in use" in done.error


def test_a_store_that_cannot_be_written(desk: Desk):
    """Exit code 1."""
    folder = desk.folder / "not-a-store"
    folder.mkdir()
    done = desk("serve", "--port", "0", store=folder)
    assert done.code == 1


def test_without_the_extra_it_says_what_to_install(desk: Desk):
    """Exit code 2 with the command."""
    code = textwrap.dedent("""
        import sys
        from importlib.abc import MetaPathFinder

        class Missing(MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("fastapi", "uvicorn"):
                    raise ModuleNotFoundError(name)

        import importlib.util
        real = importlib.util.find_spec
        gone = ("fastapi", "uvicorn")
        importlib.util.find_spec = lambda name, *a: None if name in gone else real(name, *a)
        sys.meta_path.insert(0, Missing())
        sys.argv = ["statelog", "serve"]
        from statelog.infrastructure.cli.app import main
        main()
    """)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=desk.folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == "error: serve needs fastapi: pip install 'statelog[http]'\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_and_gives_back_what_is_at_work(store_path: Path, number: int):
    """Exit code 0; the job is pending without a used attempt, and the next server goes on with it.

    The command of the activity outlives the server, and is not started again.
    """
    run = f"stops-{number}-{os.getpid()}"
    line = "echo x >> started; while [ ! -e go ]; do sleep 0.05; done"
    with Live(store_path) as live:
        live.post("/execution-runs/", real(run, line), status=202)
        soon(lambda: _status(live, run) == "running" and processes(f"STATELOG_RUN_ID={run}"))
        job = live.post("/execution-runs/", real(run, line), status=202)
        assert job["status"] == "leased"
        assert live.stop(number) == 0
        assert "Traceback" not in live.log.read_text()
    with Live(store_path) as live:
        (workspace,) = store_path.parent.rglob("started")
        workspace.with_name("go").touch()
        page = soon(lambda: _ended(live, run))
        assert page["run"]["status"] == "completed"
        assert workspace.read_text() == "x\n"
        assert live.stop() == 0


def _status(live: Live, run: str) -> str | None:
    found = live("GET", f"/execution-runs/{run}/")
    if found.status == 404 or not found.json["activities"]:
        return None
    status: str = found.json["activities"][0]["status"]
    return status


def _ended(live: Live, run: str) -> dict | None:
    page: dict = live.get(f"/execution-runs/{run}/")
    return page if page["run"]["status"] != "running" else None


def test_a_second_signal_ends_it_at_once(store_path: Path):
    """Even when a client is in the middle of its body."""
    with Live(store_path, "--no-worker") as live:
        head = f"POST {live.base}/planning-sessions/ HTTP/1.1\r\nHost: {live.host}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        with socket.create_connection(live.address) as connection:
            connection.sendall(head.encode())
            soon(lambda: live("GET", "/planning-algorithms/").status == 200)
            live.process.send_signal(signal.SIGTERM)
            soon(lambda: _refuses(live))
            live.process.send_signal(signal.SIGTERM)
            live.process.communicate(timeout=30)
        assert live.process.returncode == -signal.SIGTERM


def _refuses(live: Live) -> bool:
    try:
        socket.create_connection(live.address, timeout=5).close()
    except OSError:
        return True
    return False


def test_a_read_sees_the_write_of_another_server(store_path: Path):
    """Two servers share a store; what one was told, the other tells at once."""
    with Live(store_path) as one, Live(store_path, "--no-worker") as other:
        one.post("/execution-runs/", own(golden(), "shared"), status=202)
        soon(lambda: one("GET", "/execution-runs/shared/").status == 200)
        assert other.get("/execution-runs/shared/")["run"]["status"] == "completed"
        assert [each["run"]["id"] for each in other.get("/execution-runs/")] == ["shared"]
