"""The application: one route a path, bodies read and parsed under limits, work done in threads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from urllib.parse import parse_qsl, unquote

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from statelog import __version__
from statelog.domain.errors import Malformed
from statelog.infrastructure.http import (
    definition_endpoints,
    guard,
    planning_endpoints,
    run_endpoints,
)
from statelog.infrastructure.http.bodies import (
    Body,
    Disconnected,
    media_of,
    parse,
    pieces,
    read_body,
)
from statelog.infrastructure.http.endpoint import JSON, Call, Endpoint, Services
from statelog.infrastructure.http.failures import Failure, failure, not_found
from statelog.infrastructure.http.openapi import openapi
from statelog.infrastructure.json_values import dump_ordered

log = logging.getLogger("statelog.http")

T = TypeVar("T")

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *planning_endpoints.ENDPOINTS,
    *definition_endpoints.ENDPOINTS,
    *run_endpoints.ENDPOINTS,
)
"""Every endpoint there is."""

BASE_PATH: Final = "/akoflow-api"
CLIENT_SECONDS: Final = 20.0
THREADS: Final = 8

_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_LINGER_S: Final = 2.0


class Workers:
    """The threads in which requests are answered; of large bodies one at a time."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "http-work")
        self._turn = asyncio.Semaphore(1)

    async def do(self, act: Callable[[], T], *, large: bool = False) -> T:
        """Call a function in a thread."""
        loop = asyncio.get_running_loop()
        if not large:
            return await loop.run_in_executor(self._threads, act)
        async with self._turn:
            return await loop.run_in_executor(self._threads, act)

    def close(self) -> None:
        """Wait for what is at work."""
        self._threads.shutdown(cancel_futures=True)


class Resource:
    """One path: an ASGI application that knows its methods."""

    def __init__(self, endpoints: list[Endpoint], services: Services, workers: Workers, s: float):
        self._endpoints = {each.method: each for each in endpoints}
        if "GET" in self._endpoints:
            self._endpoints.setdefault("HEAD", self._endpoints["GET"])
        self._services, self._workers, self._seconds = services, workers, s

    @property
    def allowed(self) -> str:
        """The methods of this path."""
        return ", ".join(sorted({*self._endpoints, "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] == "OPTIONS":
            await Response(None, 204, {"Allow": self.allowed})(scope, receive, send)
            return
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            why = f"{scope['method']} is not a method of this path"
            raise Failure(405, why, {"Allow": self.allowed}, close=True)
        response = await self._answer(endpoint, scope, receive)
        await response(scope, receive, send)

    async def _answer(self, endpoint: Endpoint, scope: Scope, receive: Receive) -> Response:
        request = Request(scope)
        ids = {name: _decoded(value) for name, value in scope["path_params"].items()}
        query = _query(scope["query_string"], endpoint)
        if endpoint.body is None:
            return await self._workers.do(lambda: self._act(endpoint, Call(ids, query)))
        media = media_of(request.headers)
        body = await read_body(receive, request.headers, media, self._seconds)

        def work() -> Response:
            document = parse(body.bytes(), media)
            return self._act(endpoint, Call(ids, query, document))

        return await self._finished(body, work)

    async def _finished(self, body: Body, work: Callable[[], Response]) -> Response:
        try:
            return await self._workers.do(work, large=body.large)
        finally:
            body.close()

    def _act(self, endpoint: Endpoint, call: Call) -> Response:
        """The answer, made in a thread to its last byte."""
        found = endpoint.act(self._services, call)
        if endpoint.status == 204:
            return Response(None, 204, _HEADERS)
        content = dump_ordered(found) if endpoint.media == JSON else found.encode()
        return Response(content, endpoint.status, _HEADERS, endpoint.media)


def _decoded(part: str) -> str:
    """A part of the path as it was meant. Raises `Failure` 404 for what is not UTF-8."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise not_found() from None


def _query(raw: bytes, endpoint: Endpoint) -> dict[str, str]:
    """What the endpoint knows of a query. Raises `Malformed` for one that is there twice."""
    try:
        text = raw.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise Malformed("query", "cannot be read") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in endpoint.query:
            if name in found:
                raise Malformed(name, "is there twice")
            found[name] = value
    return found


class Front:
    """Around all routes: who may ask, errors as envelopes, and a line in the log a request."""

    def __init__(self, app: ASGIApp, token: str | None, seconds: float) -> None:
        self._app, self._token, self._seconds = app, token, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] != "http":
            return
        started, told = time.monotonic(), _Told(send)
        try:
            await self._guarded(scope, receive, told)
        except Disconnected:
            log.info("%s %s: the client went away", scope["method"], _path(scope))
            return
        finally:
            if told.status:
                spent = (time.monotonic() - started) * 1000
                said = (scope["method"], _path(scope), told.status, told.size, spent)
                log.info("%s %s %d %d bytes %.1f ms", *said)

    async def _guarded(self, scope: Scope, receive: Receive, told: _Told) -> None:
        # Ids may hold a slash, so that parts are told apart before they are decoded.
        scope = {**scope, "path": scope["raw_path"].decode("ascii", "replace")}
        try:
            guard.check(scope, Request(scope).headers, self._token)
            await self._app(scope, receive, told)
        except Disconnected:
            raise
        except Exception as error:
            if told.status:
                raise
            await self._refused(failure(error), receive, told)

    async def _refused(self, refusal: Failure, receive: Receive, send: Send) -> None:
        """Answer at once; then let the client finish for a moment, as a reset would eat it."""
        body = refusal.body
        headers = {**_HEADERS, **refusal.headers, "Content-Type": JSON}
        headers |= {"Content-Length": str(len(body))}
        headers |= {"Connection": "close"} if refusal.close else {}
        raw = [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await send({"type": "http.response.body", "body": body, "more_body": refusal.close})
        if refusal.close:
            await _drained(receive, min(_LINGER_S, self._seconds))
            await send({"type": "http.response.body", "body": b""})


async def _drained(receive: Receive, seconds: float) -> None:
    """Read what still comes, and forget it."""
    try:
        async with asyncio.timeout(seconds):
            async for _ in pieces(receive, seconds):
                pass
    except (TimeoutError, Disconnected):
        pass


class _Told:
    """Passes messages on, and remembers what the log says of them."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.size = 0

    async def __call__(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        self.size += len(message.get("body", b""))
        await self._send(message)


def _path(scope: Scope) -> str:
    path: str = scope["raw_path"].decode("ascii", "replace")
    query: bytes = scope["query_string"]
    return f"{path}?{query.decode('ascii', 'replace')}" if query else path


def make_app(
    services: Services,
    *,
    base_path: str = BASE_PATH,
    token: str | None = None,
    seconds: float = CLIENT_SECONDS,
) -> tuple[ASGIApp, Workers]:
    """The ASGI application, and the threads that it works in: close them at the end.

    `seconds` is how long a client may take for the next piece of its body.
    """
    workers = Workers()
    app = FastAPI(
        title="statelog",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    document = openapi(ENDPOINTS, base_path)
    app.openapi = lambda: document  # type: ignore[method-assign]
    told = Endpoint("GET", "", "", "", lambda services, call: document)
    paths: dict[str, list[Endpoint]] = {"/openapi.json": [told]}
    paths[f"{base_path}/openapi.json"] = [told]
    for endpoint in ENDPOINTS:
        paths.setdefault(f"{base_path}{endpoint.path}", []).append(endpoint)
    for path, endpoints in paths.items():
        app.router.routes.append(Route(path, Resource(endpoints, services, workers, seconds)))
    app.router.default = _nothing_there
    return Front(app.router, token, seconds), workers


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    raise not_found()
