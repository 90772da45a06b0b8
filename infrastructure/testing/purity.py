"""Whether a view is a pure fold: what its code reaches for, and what it does to its input."""

from __future__ import annotations

import builtins
import dis
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from inspect import unwrap
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from statelog.domain.event import Recorded
from statelog.domain.ids import is_below
from statelog.infrastructure.testing.frozen import Touched, frozen, recorded_frozen
from statelog.projections.projection import Projection
from statelog.projections.replay import document

IMPURE: Final = frozenset(
    {
        *("asyncio", "fcntl", "http", "io", "locale", "logging", "multiprocessing", "os", "random"),
        *("secrets", "select", "shutil", "signal", "socket", "sqlite3", "sqlite_utils", "ssl"),
        *("subprocess", "tempfile", "threading", "time", "urllib", "uuid", "eventsourcing"),
    }
)
"""Modules that answer differently at another time or place, or change something there."""

CLOCKS: Final = frozenset({"now", "utcnow", "today"})
CALLS: Final = frozenset(
    {"open", "print", "input", "exec", "eval", "__import__", "globals", "id", "hash"}
)


def assert_pure(projection: Projection[Any], events: Iterable[Recorded]) -> None:
    """Fail with the reason unless the view is a pure fold of these events, which are in log order.

    Its code reaches for no clock, chance, file or network; it changes neither its events nor its
    state; folded twice it gives the same documents; and each row's events are below the prefix
    that it declares.
    """
    found = impurities(projection)
    assert not found, f"view {projection.name} is not pure: {'; '.join(found)}"
    told = [recorded for recorded in events if projection.reads(recorded)]
    _assert_below(projection, told)
    once, twice = (_documents(projection, told) for _ in range(2))
    different = [key for key in {**once, **twice} if once.get(key) != twice.get(key)]
    assert not different, (
        f"view {projection.name} folded twice differs for {different[0]!r}: "
        f"{once.get(different[0])} and then {twice.get(different[0])}"
    )


def impurities(projection: Projection[Any]) -> list[str]:
    """What the view's functions, and those they call, reach for that a fold may not."""
    seen: set[int] = set()
    roots = (projection.evolve, projection.key, projection.show, projection.below)
    found = (
        text
        for root in (*roots, *projection.columns.values())
        for text in _of_value(root, seen, frozenset())
    )
    return list(dict.fromkeys(found))


def _of_value(value: Any, seen: set[int], attributes: frozenset[str]) -> Iterator[str]:
    """What is wrong with a value that a function uses with some of these attributes."""
    if isinstance(value, ModuleType):
        yield from _of_module(value.__name__, attributes)
        return
    if isinstance(value, partial):
        yield from _of_value(value.func, seen, frozenset())
        return
    if callable(value):
        home = str(getattr(value, "__module__", None) or "")
        yield from _of_module(home, attributes if isinstance(value, type) else frozenset())
    function = value.__func__ if isinstance(value, MethodType) else value
    function = unwrap(function) if hasattr(function, "__wrapped__") else function
    if isinstance(function, FunctionType) and id(function) not in seen and _is_theirs(function):
        seen.add(id(function))
        yield from _of_code(function, function.__code__, seen)


def _is_theirs(function: FunctionType) -> bool:
    root = (function.__module__ or "").partition(".")[0]
    return root == "__main__" or root not in sys.stdlib_module_names


def _of_module(name: str, attributes: frozenset[str]) -> Iterator[str]:
    root = name.partition(".")[0]
    if root in IMPURE:
        yield root
    elif root == "datetime":
        yield from (f"datetime.{clock}" for clock in sorted(attributes & CLOCKS))


def _of_code(function: FunctionType, code: CodeType, seen: set[int]) -> Iterator[str]:
    """What one function, or one defined inside it, uses."""
    where = f"{function.__qualname__} uses"
    told = list(dis.get_instructions(code))
    attributes = frozenset(
        str(each.argval) for each in told if each.opname in ("LOAD_ATTR", "LOAD_METHOD")
    )
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for each in told:
        name = str(each.argval)
        if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield f"{function.__qualname__} changes the global {name}"
        elif each.opname == "IMPORT_NAME":
            yield from (f"{where} {bad}" for bad in _of_module(name, attributes))
        elif each.opname == "LOAD_GLOBAL":
            yield from _of_global(function, name, attributes, seen)
        elif each.opname == "LOAD_DEREF" and name in cells:
            bound = _content(cells[name])
            yield from _told(where, _of_value(bound, seen, attributes))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _of_code(function, inner, seen)


def _of_global(
    function: FunctionType, name: str, attributes: frozenset[str], seen: set[int]
) -> Iterator[str]:
    where = f"{function.__qualname__} uses"
    if name in function.__globals__:
        yield from _told(where, _of_value(function.__globals__[name], seen, attributes))
    elif name in CALLS and hasattr(builtins, name):
        yield f"{where} {name}()"


def _told(where: str, found: Iterable[str]) -> Iterator[str]:
    """What a called function says of itself is said as it is."""
    return (text if " " in text else f"{where} {text}" for text in found)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _assert_below(projection: Projection[Any], events: Sequence[Recorded]) -> None:
    for recorded in events:
        key = projection.key(recorded)
        prefix = None if key is None else projection.below(key)
        assert prefix is None or is_below(recorded.stream, prefix), (
            f"view {projection.name} says that the events of {key!r} are below {prefix}, "
            f"and event {recorded.position} is in {recorded.stream}"
        )


def _documents(projection: Projection[Any], events: Iterable[Recorded]) -> dict[str, str]:
    """The documents as text, each event and state frozen before the fold sees it."""
    states: dict[str, Any] = {}
    try:
        for recorded in map(recorded_frozen, events):
            key = projection.key(recorded)
            if key is None:
                continue
            before = states.get(key)
            at = f"event {recorded.position} ({recorded.name})"
            states[key] = projection.evolve(
                frozen(projection.blank if before is None else before), recorded
            )
        at = "show"
        shown = {
            key: document(projection, key, frozen(state))
            for key, state in states.items()
            if state is not None
        }
    except Touched as error:
        raise AssertionError(f"view {projection.name} is not pure at {at}: {error}") from None
    return {key: json.dumps(seen) for key, seen in shown.items()}
