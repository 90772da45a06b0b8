"""Which step IDs a plan may use: they name work directories (P1 to P5, D5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from unicodedata import normalize

from statelog.domain.execution.findings import Rejected, kind_of
from statelog.domain.execution.spec import Json

LONGEST_PART: Final = 255
"""Bytes of UTF-8 that one part of a path may have."""
ENGINE_FILES: Final = ("plan.json", "success.fingerprint")
"""Files of the engine inside work directories; no part of a step ID is one of them."""


def check_step_ids(step_ids: Iterable[Json]) -> Iterator[Rejected]:
    """What is wrong with the IDs of a plan, in plan order; nothing after the first is of use."""
    exact: dict[str, int] = {}
    caseless: dict[str, str] = {}
    for position, step_id in enumerate(step_ids):
        place = f"step at position {position}"
        if not isinstance(step_id, str):
            yield Rejected("P1", f"{place}: step_id must be a string, not {kind_of(step_id)}")
            return
        yield from _check_path(step_id, place)
        if step_id in exact:
            why = f"the step at position {exact[step_id]} has the same step_id {step_id!r}"
            yield Rejected("P4", f"{place}: {why}", step_id)
        other = caseless.setdefault(_caseless(step_id), step_id)
        if other != step_id:
            why = f"step_id {step_id!r} differs from {other!r} only by case or composition"
            yield Rejected("P5", f"{place}: {why}", step_id)
        exact[step_id] = position


def _check_path(step_id: str, place: str) -> Iterator[Rejected]:
    if not step_id:
        yield Rejected("P2", f"{place}: step_id is empty")
    what = f"{place}: step_id {step_id!r}"
    wrong = _not_a_relative_path(step_id)
    if wrong:
        yield Rejected("P3", f"{what} {wrong}")
    for part in step_id.split("/"):
        wrong = _not_a_name(part)
        if wrong:
            yield Rejected("P3b", f"{what}: {wrong}")


def _not_a_relative_path(step_id: str) -> str | None:
    if step_id.startswith("/"):
        return "starts with /"
    if "\0" in step_id:
        return "holds a NUL"
    parts = step_id.split("/")
    if "" in parts:
        return "has an empty part"
    dots = [part for part in parts if part in (".", "..")]
    return f"has the part {dots[0]}" if dots else None


def _not_a_name(part: str) -> str | None:
    if part in ENGINE_FILES:
        return f"the part {part} is the name of a file of the engine"
    try:
        size = len(part.encode("utf-8"))
    except UnicodeEncodeError:
        return f"the part {part!r} cannot be encoded in UTF-8"
    return f"a part has {size} bytes, more than {LONGEST_PART}" if size > LONGEST_PART else None


def _caseless(step_id: str) -> str:
    """Key of Unicode canonical caseless matching: decompose, case-fold, decompose."""
    return normalize("NFD", normalize("NFD", step_id).casefold())
