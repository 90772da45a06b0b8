"""Every error a caller may see, one class for each way of saying no."""

from __future__ import annotations


class StatelogError(Exception):
    """Base of all errors raised on purpose."""


class Refused(StatelogError):
    """A rule forbids the decision in this state; retry after something changed."""

    def __init__(self, reason: str, rule: str) -> None:
        super().__init__(reason, rule)
        self.reason = reason
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.reason} [{self.rule}]"


class IllegalTransition(StatelogError):
    """The lifecycle has no row for this event in this status: a bug or a damaged log."""

    def __init__(self, lifecycle: str, status: object, event: str) -> None:
        super().__init__(lifecycle, status, event)
        self.lifecycle = lifecycle
        self.status = status
        self.event = event

    def __str__(self) -> str:
        return f"{self.lifecycle}: no transition from {self.status} on {self.event}"


class Conflict(StatelogError):
    """Another writer moved the stream first, or an expected version was not met."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(stream, expected, actual)
        self.stream = stream
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.stream}: expected version {self.expected}, found {self.actual}"


class OutcomeUnknown(StatelogError):
    """The commit may or may not have landed; look the command up before doing it again."""

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self.command = command

    def __str__(self) -> str:
        return f"the commit of command {self.command} may have landed; look it up"


class Unreadable(StatelogError):
    """A stored event cannot be decoded: unknown name, bad payload or no upcaster."""

    def __init__(self, position: int, name: str, why: str) -> None:
        super().__init__(position, name, why)
        self.position = position
        self.name = name
        self.why = why

    def __str__(self) -> str:
        return f"event {self.position} ({self.name}) cannot be read: {self.why}"


class StoreError(StatelogError):
    """The store's file says no.

    `kind` is one of `busy`, `full`, `read-only`, `foreign`, `newer`, `damaged`, `closed`, `io`;
    only `busy` is worth trying again as it is.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed a moment later."""
        return self.kind == "busy"

    def __str__(self) -> str:
        return self.message


class NotFound(StatelogError):
    """No such record."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(kind, id)
        self.kind = kind
        self.id = id

    def __str__(self) -> str:
        return f"no {self.kind} {self.id!r}"


class Invalid(StatelogError):
    """Input that does not decode or breaks a rule; names the field and says why."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(field, why)
        self.field = field
        self.why = why

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"


class Malformed(Invalid):
    """Input that does not decode to the shape that is asked for: an unknown key, a wrong type."""
