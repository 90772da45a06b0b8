"""Values that say so when somebody changes them in place."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, Final, NoReturn

from statelog.domain.event import Recorded


class Touched(TypeError):
    """Somebody changed what was only lent."""


def _refuse(kind: str, method: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *given: Any, **named: Any) -> NoReturn:
        raise Touched(f"it changes in place ({method}) a {kind} of an event or a state")

    return refuse


class FrozenDict(dict[Any, Any]):
    """A dict in all but that it cannot be changed."""


class FrozenList(list[Any]):
    """A list in all but that it cannot be changed."""


_DICT: Final = (
    *("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"),
)
_LIST: Final = (
    *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend"),
    *("insert", "pop", "remove", "reverse", "sort"),
)
for _name in _DICT:
    setattr(FrozenDict, _name, _refuse("dict", _name))
for _name in _LIST:
    setattr(FrozenList, _name, _refuse("list", _name))


def frozen(value: Any) -> Any:
    """The value with every dict and list in it frozen, also those inside dataclasses."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(each) for key, each in value.items()})
    if isinstance(value, list):
        return FrozenList(map(frozen, value))
    if type(value) is tuple:
        return tuple(map(frozen, value))
    if is_dataclass(value) and not isinstance(value, type):
        return _of_dataclass(value)
    return value


def recorded_frozen(recorded: Recorded) -> Recorded:
    """An envelope whose payload is frozen."""
    copied = copy(recorded)
    copied.__dict__["event"] = frozen(recorded.event)
    return copied


def _of_dataclass(value: Any) -> Any:
    changed = {
        field.name: new
        for field in fields(value)
        if (new := frozen(old := getattr(value, field.name))) is not old
    }
    if not changed:
        return value
    copied = copy(value)
    for name, new in changed.items():
        object.__setattr__(copied, name, new)
    return copied
