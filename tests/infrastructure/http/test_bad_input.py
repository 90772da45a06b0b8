"""Hostile input: a clear error in bounded time and memory, never a 5xx, and nothing is stored."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.infrastructure.http.live import JSON, YAML, Live

MIB = 1024 * 1024
PATH = "/planning-sessions/"
CLIENT_S = 1.0
MOST_MEMORY = 1000 * MIB
PROMPTLY_S = 10.0


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server whose patience is short."""
    store = tmp_path_factory.mktemp("bad") / "s.db"
    with Live(store, "--no-worker", "--client-timeout", CLIENT_S) as live:
        yield live
        assert "Traceback" not in live.log.read_text()


@pytest.fixture(autouse=True)
def _nothing_is_stored(live: Live) -> Iterator[None]:
    """P9, and the server is still there afterwards."""
    before = live.kept()
    yield
    assert live.kept() == before
    assert live("GET", "/planning-algorithms/").status == 200


DEEP = b"[" * 300 + b"]" * 300
BOMB = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("data", "media", "status", "said"),
    [
        (b"", JSON, 400, "empty"),
        (b"  \n", YAML, 400, "empty"),
        (b"{", JSON, 400, "line 1, column 2"),
        (b"[]", JSON, 400, "object"),
        (b"null", JSON, 400, "object"),
        (b'{"budget": NaN}', JSON, 400, "budget"),
        (b'{"budget": Infinity}', JSON, 400, "budget"),
        (b'{"budget": 1e999}', JSON, 400, "budget"),
        (b'{"budget": ' + b"9" * 5000 + b"}", JSON, 400, "64 bits"),
        (b'{"id": "\\ud800"}', JSON, 400, "surrogate"),
        (b'{"\\ud800": 1}', JSON, 400, "surrogate"),
        (b'{"id": "\xff"}', JSON, 400, "UTF-8"),
        (b'{"id": "a", "id": "b"}', JSON, 400, "twice"),
        (b'{"configuration": {"a": ' + DEEP + b"}}", JSON, 400, "deep"),
        (b"[" * 100_000, JSON, 400, "deep"),
        (b'{"id": 7}', JSON, 400, "id"),
        (b'{"id": "' + b"x" * 300 + b'"}', JSON, 422, ""),
        (BOMB, YAML, 400, "alias"),
        (b"id: a\nid: b\n", YAML, 400, "twice"),
        (b"id: !!python/object/apply:os.system [ls]\n", YAML, 400, ""),
        (b"id: 2026-01-01\n", YAML, 400, ""),
        (b"1: 2\n", YAML, 400, "key"),
        (b"budget: .nan\n", YAML, 400, "budget"),
        (b"a: [" * 5000, YAML, 400, ""),
        (b"id: [a\n", YAML, 400, "line"),
        (b"--- 1\n--- 2\n", YAML, 400, ""),
        (b"\x00", YAML, 400, ""),
    ],
)
def test_a_body_that_cannot_be(live: Live, data: bytes, media: str, status: int, said: str):
    """The message says what is wrong, and where."""
    refused = live("POST", PATH, data=data, media=media)
    assert refused.status == status, refused.body
    assert said in refused.error


@pytest.mark.parametrize(
    "data",
    [
        b"[" + b"[]," * (10 * MIB) + b"[]]",
        b'{"configuration":' + b'{"a":' * (5 * MIB) + b"1" + b"}" * (5 * MIB) + b"}",
        b'{"a":[' + b'"abcdefgh",' * 2_900_000 + b"NaN]}",
        b'{"configuration":{"a":"' + b"[" * (30 * MIB) + b'"},"x":1}',
        b'{"a":"' + b"\\u0041" * (5 * MIB),
    ],
    ids=["lists", "objects", "values", "text", "escapes"],
)
def test_a_large_body(live: Live, data: bytes):
    """Some 30 MiB of it, twice at once: refused soon, and others are answered meanwhile."""
    answers: list[tuple[int, str]] = []

    def send() -> None:
        refused = live("POST", PATH, data=data)
        answers.append((refused.status, refused.error))

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    waits = []
    while any(thread.is_alive() for thread in threads):
        asked = time.monotonic()
        assert live("GET", "/planning-algorithms/").status == 200
        waits.append(time.monotonic() - asked)
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert {status for status, _ in answers} <= {400, 413}
    assert max(waits) < PROMPTLY_S
    assert all(said for _, said in answers)
    assert live.memory() < MOST_MEMORY, f"{live.memory() / MIB:.0f} MiB"


@pytest.mark.parametrize(("media", "limit"), [(JSON, 32 * MIB), (YAML, MIB), ("text/yaml", MIB)])
def test_what_is_too_large_is_refused_while_it_comes(live: Live, media: str, limit: int):
    """By what it says of its length, before a byte is read; without that, at the limit."""
    head = f"POST {live.base}{PATH} HTTP/1.1\r\nHost: {live.host}\r\nContent-Type: {media}\r\n"
    declared = f"{head}Content-Length: {limit + 1}\r\n\r\n"
    answer = live.raw(declared.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert str(limit).encode() in answer
    with socket.create_connection(live.address, timeout=30) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"%x\r\n%s\r\n" % (MIB // 4, b" " * (MIB // 4))
        for _ in range(limit // (MIB // 4)):
            connection.sendall(piece)
        connection.sendall(piece)
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_the_limit_itself_is_accepted(live: Live):
    """A body of exactly as many bytes is read."""
    for media, limit in ((JSON, 32 * MIB), (YAML, MIB)):
        tail = b'{"x": 1}'
        answer = live("POST", PATH, data=b" " * (limit - len(tail)) + tail, media=media)
        assert (answer.status, answer.error) == (400, "x: is not a known field")


@pytest.mark.parametrize(
    "media",
    [
        "text/plain",
        "application/xml",
        "multipart/form-data; boundary=x",
        "",
        None,
        "application/json; charset=utf-16",
        "application/jsonp",
    ],
)
def test_other_content_types_are_415(live: Live, media: str | None):
    """Also none at all."""
    assert live("POST", PATH, data=b"{}", media=media).status == 415


@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        "application/yaml",
        "application/x-yaml",
        "text/yaml",
    ],
)
def test_these_content_types_are_read(live: Live, media: str):
    """They get as far as the field that is unknown."""
    assert live("POST", PATH, data=b'{"x": 1}', media=media).error == "x: is not a known field"


def test_a_compressed_body_is_415(live: Live):
    """It is not guessed at."""
    sent = {"Content-Encoding": "gzip"}
    assert live("POST", PATH, data=b"{}", headers=sent).status == 415


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "FOO"])
def test_a_wrong_method_is_405(live: Live, method: str):
    """With all methods of the path."""
    refused = live(method, PATH)
    assert refused.status == 405
    assert refused.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert method in refused.error


def test_head_and_options(live: Live):
    """HEAD is GET without the body, OPTIONS says what there is."""
    head, get = live("HEAD", PATH), live("GET", PATH)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
    options = live("OPTIONS", "/execution-scopes/x/")
    assert (options.status, options.headers["allow"]) == (204, "DELETE, GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    "path",
    [
        "/planning-sessions",
        "/nothing/",
        "/",
        "",
        "/planning-sessions//",
        "/planning-sessions/../x/",
        "/planning-sessions/%00/",
        "/planning-sessions/%ff/",
        f"/planning-sessions/{'x' * 3000}/",
        "/planning-sessions/%F0%9F%98%80/candidates/%2F/",
    ],
)
def test_a_path_that_leads_nowhere_is_404(live: Live, path: str):
    """A trailing slash is required."""
    refused = live("GET", path)
    assert (refused.status, refused.error) == (404, "Not Found")


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 200_000,
    ],
)
def test_what_is_no_http_is_told_so(live: Live, data: bytes):
    """400 in the same envelope, and the connection is closed."""
    answer = live.raw(data)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"error"}


def test_a_client_that_goes_away(live: Live):
    """In the middle of its body, twenty at once: nothing happens."""
    head = f"POST {live.base}{PATH} HTTP/1.1\r\nHost: {live.host}\r\nContent-Type: {JSON}\r\n"
    for _ in range(20):
        with socket.create_connection(live.address) as connection:
            connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())


def test_a_slow_client_is_not_waited_for(live: Live):
    """Headers that come byte by byte, and a body that does not come: 408 each."""
    head = f"POST {live.base}{PATH} HTTP/1.1\r\nHost: {live.host}\r\nContent-Type: {JSON}\r\n"
    started = time.monotonic()
    with socket.create_connection(live.address, timeout=20) as slow:
        answer = live.raw(f"{head}Content-Length: 10\r\n\r\n{{".encode())
        assert answer.startswith(b"HTTP/1.1 408 ")
        while time.monotonic() < started + 4 * CLIENT_S:
            try:
                slow.sendall(b"G")
            except OSError:
                break
            time.sleep(0.1)
        else:
            pytest.fail("the headers are waited for without end")


def test_an_idle_connection_is_closed(live: Live):
    """One that says nothing at all gets a 408."""
    assert live.raw(b"").startswith(b"HTTP/1.1 408 ")


def test_many_slow_clients_hold_nobody_up(live: Live):
    """A hundred connections that say nothing: others are answered."""
    idle = [socket.create_connection(live.address) for _ in range(100)]
    try:
        assert live("GET", PATH).status == 200
    finally:
        for each in idle:
            each.close()
