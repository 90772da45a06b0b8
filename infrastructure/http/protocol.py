"""HTTP/1.1 for clients of any kind: headers must come in time, and what is no HTTP is told so."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

LINGER_S: Final = 2.0


class Patient(H11Protocol):
    """A connection whose client has `seconds` for the headers of each request."""

    seconds: ClassVar[float] = 20.0

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._clock: asyncio.TimerHandle | None = None
        self._over = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        ours = transport.get_extra_info("socket")
        with suppress(OSError, AttributeError):
            # Whoever does not take an answer for so long is gone.
            limit = int(3000 * self.seconds)
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of the next request start the clock."""
        if self._over:
            return
        super().data_received(data)
        if self._idle and self._clock is None and not self.transport.is_closing():
            self._wait()

    def handle_events(self) -> None:
        """Stop the clock once the headers are there."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Say that this is no HTTP."""
        self._last_words(400, msg)

    @property
    def _idle(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _wait(self) -> None:
        self._clock = self.loop.call_later(self.seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        self._clock = None
        if self._idle and not self.transport.is_closing():
            self._last_words(408, "the headers of the request took too long to arrive")

    def _last_words(self, status: int, message: str) -> None:
        """Answer an error, if HTTP still allows an answer, and close.

        Not at once: what the client is still sending would make a reset of it, and that would take
        the answer away.
        """
        body = json.dumps({"error": message}).encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        with suppress(h11.LocalProtocolError):
            head = self.conn.send(h11.Response(status_code=status, headers=headers))
            self.transport.write(head + self.conn.send(h11.Data(data=body)))
            self.conn.send(h11.EndOfMessage())
            self.transport.write_eof()
        self._over = True
        self._stop_waiting()
        self.loop.call_later(min(LINGER_S, self.seconds), self.transport.close)
