"""What preflight may find, and what it is told about a step's function (4.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from statelog.domain.execution.spec import Json


@dataclass(frozen=True)
class Accepted:
    """Nothing is wrong; each step's function, resolved once."""

    functions: Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class Rejected:
    """The plan is definitively malformed; `check` is the number of the rule, such as `P6`.

    `step_id` is None for the plan as a whole, and for a step whose ID is what is wrong.
    """

    check: str
    message: str
    step_id: str | None = None


@dataclass(frozen=True)
class Aborted:
    """Nobody can say whether the plan is malformed: an infrastructure failure, with its cause."""

    check: str
    message: str
    step_id: str | None
    error: Exception


Finding = Rejected | Aborted


@dataclass(frozen=True)
class Resolved:
    """What a reference names."""

    value: Any


@dataclass(frozen=True)
class Unresolved:
    """Why a reference names nothing.

    `module_loaded` says whether its module was imported to the end. A `ModuleNotFoundError`
    carries the missing module's name as an author would spell it. `searched` says where modules
    were looked for, or nothing.
    """

    error: Exception
    module_loaded: bool
    searched: str = ""


Resolver = Callable[[str, str], Resolved | Unresolved]
"""(module, attribute) -> what they name. It imports, so it lives outside of this layer."""


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    tuple: "a list",
    dict: "a mapping",
}


def kind_of(value: Json) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), f"an object of {type(value).__name__}")


def text_of(error: BaseException) -> str:
    """Class and text of an exception, encodable in UTF-8."""
    text = f"{type(error).__name__}: {error}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
