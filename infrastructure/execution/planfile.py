"""Plan files: JSON or YAML, refused by place when anything is wrong with them (1.3, D21)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.spec import Json, PlanSpec, path_part
from statelog.infrastructure.documents import (
    checked,
    integer,
    parse_json,
    read_document,
    shortened,
)

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
    body = read_document(path, "plan")
    try:
        spec = PlanSpec.from_json(body)
        path_part(spec.plan_id, "plan.plan_id")
        path_part(spec.realm, "plan.realm")
    except Invalid as error:
        raise Invalid(f"{path}: {error.field}", error.why) from None
    plan: dict[str, Json] = body
    return plan


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
            raise Invalid(_OPTION, f"{shortened(setting)!r}: there is no step {step_id!r}")
        for step in named:
            if key not in step["params"]:
                known = ", ".join(step["params"]) or "none"
                raise Invalid(
                    _OPTION,
                    f"{shortened(setting)!r}: step {step_id!r} has no param {key!r} "
                    f"(it has {known})",
                )
            step["params"] = {**step["params"], key: value}
    return {**body, "steps": steps} if steps else dict(body)


def _setting(setting: str) -> tuple[str, str, Json]:
    target, equals, text = setting.partition("=")
    step_id, dot, key = target.rpartition(".")
    if not (equals and dot and step_id and key):
        raise Invalid(_OPTION, f"{shortened(setting)!r} is not STEP.KEY=VALUE")
    try:
        value = parse_json(text, "value") if _is_json(text) else checked(text, "value")
    except Invalid as error:
        raise Invalid(_OPTION, f"{shortened(setting)!r}: {error.field} {error.why}") from None
    return step_id, key, value


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_int=integer, parse_constant=_not_json)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _not_json(constant: str) -> Any:
    raise ValueError(constant)
