"""Errors as status codes: the one table of the house, and `{"error": message}` (5)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from statelog.domain.errors import (
    Conflict,
    Invalid,
    Malformed,
    NotFound,
    OutcomeUnknown,
    Refused,
    StoreError,
)

log = logging.getLogger("statelog.http")


class Failure(Exception):
    """A request that is answered with an error; `close` ends its connection."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        close: bool = False,
    ) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.headers = headers or {}
        self.close = close

    @property
    def body(self) -> bytes:
        """The envelope. What cannot be written as UTF-8 is escaped."""
        return json.dumps({"error": self.message}).encode()


def not_found() -> Failure:
    """The answer for what is not there."""
    return Failure(404, "Not Found")


def failure(error: Exception) -> Failure:
    """What a client is told of an error; of one that nobody foresaw, nothing but that."""
    match error:
        case Failure():
            return error
        case NotFound():
            return not_found()
        case Malformed() | Invalid():
            status = 400 if isinstance(error, Malformed) else 422
            return Failure(status, f"{error.field or 'body'}: {error.why}")
        case Refused():
            return Failure(409, error.reason)
        case Conflict():
            return Failure(409, "somebody else was first; read again and try again")
        case StoreError() | OutcomeUnknown():
            log.error("the store says no: %s", error)
            again = {"Retry-After": "1"} if getattr(error, "retryable", True) else {}
            return Failure(503, str(error), again)
        case _:
            log.error("a request failed", exc_info=error)
            return Failure(500, "internal error; the log of the server says more")
