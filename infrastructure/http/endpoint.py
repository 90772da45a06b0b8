"""What an endpoint is: a line of the table of section 5, and the function that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.errors import Malformed
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.planning.sessions import Sessions
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.views import Views
from statelog.infrastructure.workflows.definitions import Definitions

JSON: Final = "application/json"
YAML: Final = "application/yaml"


class Services:
    """What endpoints call: one journal and its views, shared by all threads; `actor` acts."""

    def __init__(self, journal: Journal, views: Views, actor: str) -> None:
        self.journal = journal
        self.views = views
        self.actor = actor
        self.definitions = Definitions(journal)
        self.sessions = Sessions(journal, views=views)
        self.runs = Runs(journal, views=views)


@dataclass(frozen=True)
class Call:
    """One request: the ids in its path, what its query says, and the value of its body."""

    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    document: Any = None

    def id(self, name: str) -> str:
        """An id of the path."""
        return self.ids[name]

    def integer(self, name: str) -> int | None:
        """A number of the query, None when it is not there. Raises `Malformed`."""
        text = self.query.get(name)
        if text is None:
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
            raise Malformed(name, "must be an integer")
        return int(text)


Act = Callable[[Services, Call], Any]
"""Answers the JSON value of the response, in a thread. Raises what `failures` has a code for."""


@dataclass(frozen=True)
class Endpoint:
    """One method of one path below the base path; `body` and `answer` are types with a schema.

    `errors` are the codes beside those that every endpoint may answer. `media` is the type of what
    is answered; other than JSON it is text that `act` made.
    """

    method: str
    path: str
    name: str
    summary: str
    act: Act
    status: int = 200
    answer: Any = None
    body: Any = None
    errors: tuple[int, ...] = ()
    query: Mapping[str, Any] = field(default_factory=dict)
    media: str = JSON
