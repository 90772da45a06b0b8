"""What PostgreSQL and its library say, as the kinds of `StoreError`."""

from __future__ import annotations

from typing import Final

import psycopg

from statelog.domain.errors import StoreError

_KINDS: Final = {
    "25006": "read-only",
    "25P03": "busy",
    "40001": "busy",
    "40P01": "busy",
    "42501": "read-only",
    "42703": "damaged",
    "42P01": "damaged",
    "53100": "full",
    "53300": "busy",
    "55P03": "busy",
    "57014": "busy",
    "57P01": "lost",
    "57P02": "lost",
    "57P03": "lost",
    "57P05": "lost",
    "XX001": "damaged",
    "XX002": "damaged",
}
_SAY: Final = {
    "busy": "{where} is in use by others ({why}); try again",
    "lost": "the connection to {where} was lost ({why}); try again",
    "full": "the server's disk is full: nothing was written to {where}; make room and try again",
    "read-only": "{where} cannot be written ({why}); check the rights of the role",
    "foreign": "{where} is not a statelog store ({why}); name another database or schema",
    "newer": "{where} was made by a newer release (format {why}); update statelog",
    "damaged": "{where} is damaged ({why}); restore a backup",
    "closed": "{where} was closed; open it again",
    "io": "{where} cannot be used ({why})",
}
_PASSING: Final = ("starting up", "shutting down", "in recovery", "too many", "connection slots")


def fault(kind: str, where: str, why: object = "") -> StoreError:
    """A `StoreError` of a kind, with the sentence that says what to do; a lost connection is busy.

    `where` has no password in it.
    """
    said = _SAY[kind].format(where=where, why=why)
    return StoreError("busy" if kind == "lost" else kind, said)


def store_error(error: psycopg.Error, where: str) -> StoreError:
    """The `StoreError` for what an open store's server said, or its absence."""
    state = error.sqlstate
    lost = state is None and isinstance(error, psycopg.OperationalError)
    gone = lost or (state or "").startswith("08")
    kind = "lost" if gone else _KINDS.get(state or "", "io")
    return fault(kind, where, _first_line(error))


def unreachable(error: psycopg.Error, where: str) -> StoreError:
    """The `StoreError` for a store that could not be opened: a wrong address is not tried again."""
    return fault("lost" if passes(error) else "io", where, _first_line(error))


def passes(error: psycopg.Error) -> bool:
    """Whether a server that would not connect says that it may soon."""
    return any(word in str(error) for word in _PASSING)


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
