"""Plan files: JSON or YAML, refused by place when anything is wrong with them (1.3, D21)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.spec import Json, PlanSpec, path_part
from statelog.infrastructure.json_values import escaped, to_json, within

YAML_SUFFIXES: Final = (".yaml", ".yml")
YAML_LIMIT: Final = 1024 * 1024
"""Bytes a YAML plan file may have."""

DEPTH_LIMIT: Final = 200
"""Levels of nesting a plan file may have; what stores it cannot hold many more."""

_OPTION: Final = "--param"


def read_plan(path: Path) -> dict[str, Json]:
    """The plan body in a file, JSON unless its name ends in `.yaml` or `.yml`.

    Raises `Invalid` naming the file and the place in it (line and column, or the path of keys): for
    a file that cannot be read or is not UTF-8 text, what is not JSON or YAML, duplicate keys,
    NaN and infinities, integers beyond 64 bits, lone surrogates, a body that is not in the
    shape of 1.3, and an id or a realm that is not one path part; of YAML also keys that are not
    strings, aliases, types JSON has not, a size above `YAML_LIMIT`, and when the `yaml` extra is
    not installed.
    """
    yaml = path.suffix.lower() in YAML_SUFFIXES
    data = _bytes(path, YAML_LIMIT + 1 if yaml else -1)
    if yaml and len(data) > YAML_LIMIT:
        raise Invalid(str(path), f"is larger than {YAML_LIMIT} bytes, the limit for YAML")
    text = _text(path, data)
    try:
        body = _parse_yaml(text) if yaml else parse_json(text)
        spec = PlanSpec.from_json(body)
        path_part(spec.plan_id, "plan.plan_id")
        path_part(spec.realm, "plan.realm")
    except Invalid as error:
        raise Invalid(f"{path}: {error.field}", error.why) from None
    checked: dict[str, Json] = body
    return checked


def parse_json(text: str, place: str = "plan") -> Json:
    """The value of JSON text that is JSON to the letter.

    Raises `Invalid` naming line and column, or the path of keys below `place`.
    """
    try:
        value = json.loads(text, object_pairs_hook=_Pairs, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise Invalid(_at(error.lineno, error.colno), f"is not JSON: {error.msg}") from None
    except RecursionError:
        raise Invalid(place, "is nested too deeply") from None
    return _checked(value, place)


def with_params(body: Mapping[str, Json], settings: Sequence[str]) -> dict[str, Json]:
    """The plan body with params set by `STEP.KEY=VALUE` each; the given body stays as it is.

    Split at the first `=`, and before it at the last `.`. The value is JSON if it parses, else a
    string. Raises `Invalid` for a setting without `=` or `.`, an unknown step or key, and a value
    that a plan file could not hold.
    """
    steps = [dict(step) for step in body.get("steps", ())]
    for setting in settings:
        step_id, key, value = _setting(setting)
        named = [step for step in steps if step["step_id"] == step_id]
        if not named:
            raise Invalid(_OPTION, f"{_short(setting)!r}: there is no step {step_id!r}")
        for step in named:
            if key not in step["params"]:
                known = ", ".join(step["params"]) or "none"
                raise Invalid(
                    _OPTION,
                    f"{_short(setting)!r}: step {step_id!r} has no param {key!r} (it has {known})",
                )
            step["params"] = {**step["params"], key: value}
    return {**body, "steps": steps} if steps else dict(body)


def _setting(setting: str) -> tuple[str, str, Json]:
    target, equals, text = setting.partition("=")
    step_id, dot, key = target.rpartition(".")
    if not (equals and dot and step_id and key):
        raise Invalid(_OPTION, f"{_short(setting)!r} is not STEP.KEY=VALUE")
    try:
        value = parse_json(text, "value") if _is_json(text) else _checked(text, "value")
    except Invalid as error:
        raise Invalid(_OPTION, f"{_short(setting)!r}: {error.field} {error.why}") from None
    return step_id, key, value


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_int=_integer, parse_constant=_not_json)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _not_json(constant: str) -> Any:
    raise ValueError(constant)


class _Pairs(list[tuple[str, Any]]):
    """The entries of a JSON object as they stand, duplicates included."""


def _integer(digits: str) -> int:
    """An integer, or one as far out of range when there are too many digits to convert."""
    return int(digits[:25])


def _checked(value: Any, place: str) -> Json:
    """Plain JSON. Raises `Invalid` naming the path of keys of the first fault."""
    plain = _merged(value, place, 0)
    try:
        return to_json(plain)
    except Invalid as error:
        raise within(place, error) from None


def _merged(value: Any, place: str, depth: int) -> Any:
    if depth > DEPTH_LIMIT:
        raise Invalid(_short(place), f"is nested more than {DEPTH_LIMIT} levels deep")
    if isinstance(value, _Pairs):
        merged: dict[str, Any] = {}
        for key, item in value:
            if key in merged:
                raise Invalid(f"{place}.{escaped(key)}", "appears twice")
            merged[key] = _merged(item, f"{place}.{key}", depth + 1)
        return merged
    if isinstance(value, list):
        return [_merged(item, f"{place}[{at}]", depth + 1) for at, item in enumerate(value)]
    return value


def _parse_yaml(text: str) -> Json:
    try:
        from statelog.infrastructure.execution.yaml_plan import parse_yaml
    except ImportError:
        raise Invalid("YAML", "needs an extra: pip install 'statelog[yaml]'") from None
    return _checked(parse_yaml(text, DEPTH_LIMIT), "plan")


def _bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Invalid(str(path), f"cannot be read: {why}") from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise Invalid(f"{path}: {_at(line, column)}", "is not UTF-8 text") from None


def _at(line: int, column: int) -> str:
    return f"line {line}, column {column}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}\N{HORIZONTAL ELLIPSIS}"
