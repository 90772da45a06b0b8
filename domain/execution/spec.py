"""Plan body and step specs, read from and written as JSON-shaped mappings (1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statelog.domain.errors import Invalid

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict of them."""

FAIL_FAST = "fail_fast"
CONTINUE_INDEPENDENT = "continue_independent"
POLICIES = (FAIL_FAST, CONTINUE_INDEPENDENT)

_STEP_NEEDS = ("step_id", "name", "fn_ref", "params")
_STEP_KEYS = ("step_id", "name", "fn_ref", "params", "deps", "scope", "inputs", "outputs")
_BODY_NEEDS = ("plan_id", "realm")
_BODY_KEYS = ("plan_id", "realm", "scope", "steps", "failure_policy")


@dataclass(frozen=True)
class StepSpec:
    """One planned step. Types below the mapping itself are checked by preflight, not here."""

    step_id: Json
    name: Json
    fn_ref: Json
    params: Mapping[str, Json] = field(default_factory=dict)
    deps: Json = ()
    scope: Mapping[str, Json] = field(default_factory=dict)
    inputs: Json = field(default_factory=dict)
    outputs: Json = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Json, place: str = "step") -> StepSpec:
        """Read one entry of `steps`. Raises `Invalid` naming the place."""
        entry = _mapping(value, place)
        _keys(entry, place, required=_STEP_NEEDS, known=_STEP_KEYS)
        _mapping(entry["params"], place, ".params")
        if "scope" in entry:
            _mapping(entry["scope"], place, ".scope")
        return cls(**entry)

    def to_json(self) -> dict[str, Json]:
        """The entry as it is stored: optional fields only when they say something."""
        optional = {"deps": self.deps, "scope": self.scope, "inputs": self.inputs}
        return {
            "step_id": self.step_id,
            "name": self.name,
            "fn_ref": self.fn_ref,
            "params": self.params,
            **{
                key: value for key, value in (*optional.items(), ("outputs", self.outputs)) if value
            },
        }


@dataclass(frozen=True)
class PlanSpec:
    """A plan body: the frozen graph of steps and its failure policy."""

    plan_id: str
    realm: str
    scope: Mapping[str, Json] = field(default_factory=dict)
    steps: tuple[StepSpec, ...] = ()
    failure_policy: Json = FAIL_FAST

    @classmethod
    def from_json(cls, value: Json, place: str = "plan") -> PlanSpec:
        """Read a plan body. Raises `Invalid` naming the place."""
        body = _mapping(value, place)
        _keys(body, place, required=_BODY_NEEDS, known=_BODY_KEYS)
        steps = body.get("steps", [])
        if not isinstance(steps, list | tuple):
            raise Invalid(f"{place}.steps", f"must be a list of steps, not {_kind(steps)}")
        return cls(
            plan_id=body["plan_id"],
            realm=body["realm"],
            scope=_mapping(body.get("scope", {}), place, ".scope"),
            steps=tuple(
                StepSpec.from_json(step, f"{place}.steps[{at}]") for at, step in enumerate(steps)
            ),
            failure_policy=body.get("failure_policy", FAIL_FAST),
        )

    def to_json(self) -> dict[str, Json]:
        """The body as it is stored."""
        return {
            "plan_id": self.plan_id,
            "realm": self.realm,
            "scope": self.scope,
            "steps": [step.to_json() for step in self.steps],
            "failure_policy": self.failure_policy,
        }


def path_part(value: Json, field: str) -> str:
    """One path part (D5): a non-empty string of at most 255 bytes. Raises `Invalid`."""
    if not isinstance(value, str):
        raise Invalid(field, "must be a string")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise Invalid(field, "holds a lone surrogate; use text that is valid UTF-8") from None
    if not 0 < size <= 255:
        raise Invalid(field, f"must have 1 to 255 UTF-8 bytes, not {size}")
    if value in (".", "..") or any(mark in value for mark in "/\\\0"):
        raise Invalid(field, f"{value!r} is not one path part: no '/', '\\', NUL, '.' or '..'")
    return value


def _mapping(value: Json, place: str, part: str = "") -> Mapping[str, Json]:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise Invalid(f"{place}{part}", f"must be a mapping, not {_kind(value)}")
    found: Mapping[str, Json] = value
    return found


def _keys(
    value: Mapping[str, Json], place: str, *, required: tuple[str, ...], known: tuple[str, ...]
) -> None:
    for key in required:
        if key not in value:
            raise Invalid(f"{place}.{key}", "is required")
    for key in value:
        if key not in known:
            raise Invalid(f"{place}.{key}", f"is not a known key (known: {', '.join(known)})")


def _kind(value: Json) -> str:
    names = {dict: "a mapping", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")
