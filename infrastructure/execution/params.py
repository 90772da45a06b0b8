"""From a step's planned params to the arguments of its function (5.2, 5.3, D17, D22)."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from statelog.domain.execution.spec import StepSpec
from statelog.domain.execution.step import In, PermanentStepError
from statelog.domain.execution.step_functions import forget_signatures

Function = Callable[..., Any]

ENV: Final = "$env"
"""The key of a reference to an environment variable, `{"$env": "NAME"}`."""


def resolved_env(
    params: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """The params with every `{"$env": "NAME"}`, however deep, replaced by the variable's value.

    Raises `PermanentStepError` with code `missing_env` for a variable that is not set.
    """
    return {key: _resolved(value, environ) for key, value in params.items()}


def _resolved(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        name = value.get(ENV)
        if len(value) == 1 and isinstance(name, str):
            return _variable(name, environ)
        return resolved_env(value, environ)
    if isinstance(value, list | tuple):
        return [_resolved(item, environ) for item in value]
    return value


def _variable(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise PermanentStepError(
            f"environment variable {name!r} is not set",
            code="missing_env",
            advice=f"Set {name} where the plan is run.",
        )
    return environ[name]


def coerced(function: Function, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params with strings made paths where the function's signature declares a path.

    A path, an optional path, and either of them annotated; nothing inside containers.
    """
    if not params:
        return {}
    paths = _signature(function).paths
    return {
        key: Path(value) if key in paths and isinstance(value, str) else value
        for key, value in params.items()
    }


def input_paths(spec: StepSpec, function: Function) -> dict[str, str | Path]:
    """Which paths are hashed: the spec's `inputs`, else the arguments annotated `In`, by key (5.3).

    Of the latter only strings and paths count, defaults included. Raises `TypeError` when the
    spec's `inputs` are not a mapping of names to paths.
    """
    if spec.inputs:
        return _declared(spec.inputs)
    signature = _signature(function)
    if not signature.inputs:
        return {}
    given = {**signature.defaults, **spec.params}
    return {
        name: value
        for name, value in given.items()
        if name in signature.inputs and isinstance(value, str | Path)
    }


def _declared(inputs: Any) -> dict[str, str | Path]:
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs must be a mapping of names to paths, not {inputs!r}")
    for key, path in inputs.items():
        if not isinstance(path, str):
            raise TypeError(f"input {key!r} must be a path, not {path!r}")
    return dict(inputs)


@dataclass(frozen=True)
class _Signature:
    """What a function says of its arguments: which are paths, which are inputs, and defaults."""

    paths: frozenset[str]
    inputs: frozenset[str]
    defaults: Mapping[str, Any]


def _signature(function: Any) -> _Signature:
    """Evaluated once a function: annotations cost more than the rest of a step."""
    try:
        return _remembered(function)
    except TypeError:
        return _evaluated(function)


def _evaluated(function: Function) -> _Signature:
    hints = _annotations(function)
    return _Signature(
        paths=frozenset(name for name, hint in hints.items() if _is_path(hint)),
        inputs=frozenset(name for name, hint in hints.items() if _is_input(hint)),
        defaults=_defaults(function),
    )


_remembered = lru_cache(maxsize=1024)(_evaluated)


def forget_functions() -> None:
    """Let go of the functions that were looked at, and so of their modules: an attempt's own."""
    _remembered.cache_clear()
    forget_signatures()


def _defaults(function: Function) -> dict[str, Any]:
    parameters = _parameters(function)
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def _parameters(function: Function) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _annotations(function: Function) -> dict[str, Any]:
    """The annotations that can be evaluated; one that cannot does not spoil the others."""
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    hints: dict[str, Any] = {}
    for name, parameter in _parameters(function).items():
        holder = type("Holder", (), {"__annotations__": {name: parameter.annotation}})
        try:
            hints.update(get_type_hints(holder, globalns=scope, include_extras=True))
        except Exception:
            continue
    return hints


def _is_path(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_path(get_args(hint)[0])
    if origin in (Union, UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
        return len(options) == 1 and _is_path(options[0])
    return hint is Path


def _is_input(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(map(_is_input, get_args(hint)))
    return get_origin(hint) is Annotated and In in get_args(hint)[1:]
