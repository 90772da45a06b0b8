"""A step's declared outputs, its function, and whether its parameters fit (P10 to P20)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from statelog.domain.execution.findings import (
    Aborted,
    Finding,
    Rejected,
    Resolved,
    Resolver,
    Unresolved,
    kind_of,
    text_of,
)
from statelog.domain.execution.spec import Json, StepSpec
from statelog.domain.execution.step import MARK


def check_outputs(step: StepSpec, place: str) -> Iterator[Rejected]:
    """P10: a mapping of non-empty keys to non-empty paths without NUL."""
    if not isinstance(step.outputs, Mapping):
        wrong = f"outputs must be a mapping, not {kind_of(step.outputs)}"
        yield Rejected("P10", f"{place}: {wrong}", step.step_id)
        return
    for key, path in step.outputs.items():
        wrong = _wrong_output(key, path)
        if wrong:
            yield Rejected("P10", f"{place}: {wrong}", step.step_id)


def _wrong_output(key: Json, path: Json) -> str:
    if not isinstance(key, str) or not key:
        return f"the key {key!r} of an output must be a string that is not empty"
    if not isinstance(path, str):
        return f"the path of output {key!r} must be a string, not {kind_of(path)}"
    if not path:
        return f"the path of output {key!r} is empty"
    return f"the path of output {key!r} holds a NUL" if "\0" in path else ""


def split_reference(fn_ref: str) -> tuple[str, str] | None:
    """Module and attribute of a reference, split at the first `:`, else at the last `.` (P12).

    None when there is no separator or a half is empty.
    """
    if ":" in fn_ref:
        module, _, attribute = fn_ref.partition(":")
    else:
        module, _, attribute = fn_ref.rpartition(".")
    return (module, attribute) if module and attribute else None


def classify(module: str, unresolved: Unresolved) -> tuple[str, bool]:
    """Number of the finding, and whether it is definitive (P13 to P17)."""
    error = unresolved.error
    if unresolved.module_loaded:
        return ("P15", True) if isinstance(error, AttributeError) else ("P17", False)
    if isinstance(error, AttributeError):
        return "P16", False
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and f"{module}.".startswith(f"{missing}."):
        return "P13", True
    return "P14", False


def check_function(
    step: StepSpec, place: str, resolve: Resolver, functions: dict[str, Callable[..., Any]]
) -> Iterator[Finding]:
    """P11 to P20; the function is resolved once, and put into `functions`."""
    if not isinstance(step.fn_ref, str):
        wrong = f"fn_ref must be a string, not {kind_of(step.fn_ref)}"
        yield Rejected("P11", f"{place}: {wrong}", step.step_id)
        return
    halves = split_reference(step.fn_ref)
    if halves is None:
        wrong = f"fn_ref {step.fn_ref!r} is not module:function or module.function"
        yield Rejected("P12", f"{place}: {wrong}", step.step_id)
        return
    found = resolve(*halves)
    if isinstance(found, Resolved):
        yield from _check_value(step, place, found.value)
        functions[step.step_id] = found.value
    else:
        yield _unresolved(step, place, *halves, found)


def _unresolved(
    step: StepSpec, place: str, module: str, attribute: str, why: Unresolved
) -> Finding:
    check, definitive = classify(module, why)
    if not definitive:
        message = f"{place}: resolving {step.fn_ref!r} failed: {text_of(why.error)}"
        return Aborted(check, message, step.step_id, why.error)
    lacking = f"module {module!r} has no attribute {attribute!r}"
    where = f" in {why.searched}" if why.searched else ""
    missing = f"there is no module {getattr(why.error, 'name', None)!r}{where}"
    wrong = missing if check == "P13" else lacking
    return Rejected(check, f"{place}: fn_ref {step.fn_ref!r}: {wrong}", step.step_id)


def _check_value(step: StepSpec, place: str, value: Any) -> Iterator[Rejected]:
    what = f"{place}: fn_ref {step.fn_ref!r}"
    if not callable(value):
        yield Rejected("P18", f"{what} names {kind_of(value)}, not a function", step.step_id)
    elif getattr(value, MARK, None) is not True:
        yield Rejected("P19", f"{what} names a function that is not marked @step", step.step_id)
    else:
        misfit = _misfit(value, step.params)
        if misfit:
            yield Rejected("P20", f"{what} does not take its params: {misfit}", step.step_id)


def forget_signatures() -> None:
    """Let go of the functions that were looked at, and so of their modules."""
    _remembered.cache_clear()


def _misfit(function: Callable[..., Any], params: Mapping[str, Json]) -> str | None:
    """Why a context and the params, by name, do not bind; None too if nobody can tell."""
    names = tuple(params)
    with suppress(Exception):
        return _remembered(function, names)
    with suppress(Exception):  # a function that cannot be remembered
        return _binding(function, names)
    return None


def _binding(function: Callable[..., Any], names: tuple[str, ...]) -> str | None:
    signature = inspect.signature(function)
    try:
        signature.bind(None, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return None


_remembered = lru_cache(maxsize=1024)(_binding)
