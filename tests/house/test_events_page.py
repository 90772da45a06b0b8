"""`docs/reference/events.md` says what is stored: every name, schema and payload field."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import statelog.domain.erasure
import statelog.domain.execution.attempt
import statelog.domain.execution.plan
import statelog.domain.execution.slot
import statelog.domain.planning.algorithm_run
import statelog.domain.planning.session
import statelog.domain.queue.job
import statelog.domain.runs.run
import statelog.domain.workflows.definitions  # noqa: F401
from statelog.domain.event import Event, event_types
from tests.house.repo import ROOT

PAGE = ROOT / "docs" / "reference" / "events.md"
HEADING = re.compile(r"^## (.+)$", re.M)
EVENT = re.compile(r"^\| `([\w.]+)` \| (\d+) \| (none|(?:`\w+` ?)+) \| ([A-Z].+\.) \|$", re.M)
FIELD = re.compile(r"^\| `(\w+)` \| ([a-z ]+) \| (.+) \|$", re.M)
JSON: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    Any: "any",
}

Events = dict[str, tuple[int, list[str]]]
Fields = dict[str, str]


def declared() -> dict[str, type[Event]]:
    """Every event that a domain of the library declares, by stored name."""
    ours = {n: c for n, c in event_types().items() if c.__module__.startswith("statelog.domain.")}
    return dict(sorted(ours.items()))


def sections(text: str) -> dict[str, tuple[Events, Fields]]:
    """The two tables of each section: events and fields. Fails on a row that does not parse."""
    found = {}
    _, *parts = HEADING.split(text)
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        events = {n: (int(schema), names(list_)) for n, schema, list_, _ in EVENT.findall(body)}
        entries = {name: json for name, json, _ in FIELD.findall(body)}
        rows = len(re.findall(r"^\| `", body, re.M))
        assert rows == len(events) + len(entries), f"a row of {title!r} does not parse, or is twice"
        found[title] = (events, entries)
    return found


def names(text: str) -> list[str]:
    """The names in backticks."""
    return re.findall(r"`(\w+)`", text)


def json_of(hint: Any) -> set[str]:
    """What a field's type is in JSON."""
    if isinstance(hint, UnionType):
        return {kind for option in get_args(hint) for kind in json_of(option)}
    if hint is NoneType:
        return {"null"}
    if get_origin(hint) is tuple:
        return {"array"}
    return {JSON.get(hint, "object")}


def stored(events: Mapping[str, type[Event]]) -> Fields:
    """What the fields of these events are in JSON, over all that have them."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for event in events.values():
        hints = get_type_hints(event)
        for field in fields(event):  # type: ignore[arg-type]
            kinds[field.name] |= json_of(hints[field.name])
    return {
        name: " or ".join([*sorted(found - {"null"}), *(["null"] if "null" in found else [])])
        for name, found in kinds.items()
    }


WRITTEN = sections(PAGE.read_text(encoding="utf-8"))


def test_every_stored_name_is_on_the_page():
    """With its schema and its payload in order; no name more, and none twice."""
    written = [entry for events, _ in WRITTEN.values() for entry in events.items()]
    code = {n: (c.schema, [f.name for f in fields(c)]) for n, c in declared().items()}  # type: ignore[arg-type]
    assert len(written) == len(dict(written))
    assert dict(written) == code


@pytest.mark.parametrize("title", WRITTEN)
def test_every_payload_field_is_explained(title: str):
    """With what it is in JSON; no field more."""
    events, entries = WRITTEN[title]
    assert entries == stored({name: declared()[name] for name in events})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("| 1 | `run_token` |", "| 2 | `run_token` |"), ("`holder` | string", "`holder` | integer")],
)
def test_a_page_that_is_wrong_is_found(wrong: str, right: str):
    """The comparison sees another schema and another type."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(wrong) == 1
    assert sections(text.replace(wrong, right)) != WRITTEN
