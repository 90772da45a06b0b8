"""Declared lifecycles as data, as a Markdown table and as a Mermaid state diagram."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from statelog.domain.lifecycle import AnyLifecycle

_MERMAID_WORDS = frozenset(
    [
        "as",
        "choice",
        "class",
        "classdef",
        "direction",
        "end",
        "fork",
        "join",
        "note",
        "state",
        "style",
    ]
)


class Notes(NamedTuple):
    """What a diagram says beside the table.

    Of rows, by the names of status and event class; of statuses by name, in lines.
    """

    rows: Mapping[tuple[str, str], str]
    statuses: Mapping[str, Sequence[str]]


def data(lifecycle: AnyLifecycle) -> dict[str, Any]:
    """The lifecycle as JSON values: name, new, statuses, final, reserved and rows.

    A row has `event` (the stored name), `type` (the class), `from`, `to` and `retired`; statuses
    are named as in the code.
    """
    return {
        "name": lifecycle.name,
        "new": lifecycle.new.name,
        "statuses": [status.name for status in lifecycle.statuses],
        "final": _in_order(lifecycle, lifecycle.final),
        "reserved": _in_order(lifecycle, lifecycle.reserved),
        "rows": [
            {
                "event": row.event.stored_name,
                "type": row.event.__name__,
                "from": row.source.name,
                "to": row.target.name,
                "retired": row.retired,
            }
            for row in lifecycle.rows
        ],
    }


def markdown(lifecycle: AnyLifecycle) -> str:
    """A table `event | from | to`, with the final and the reserved statuses below it."""
    described = data(lifecycle)
    lines = ["| event | from | to |", "|---|---|---|"]
    for row in described["rows"]:
        target = "same" if row["from"] == row["to"] else row["to"]
        note = " (retired)" if row["retired"] else ""
        lines.append(f"| `{row['event']}`{note} | {row['from']} | {target} |")
    final, reserved = (", ".join(described[key]) or "none" for key in ("final", "reserved"))
    return "\n".join([*lines, "", f"Final: {final}. Reserved: {reserved}.", ""])


def mermaid(lifecycle: AnyLifecycle, notes: Notes | None = None) -> str:
    """A `stateDiagram-v2`; events that lead from one status to the same other share an arrow."""
    members = lifecycle.statuses.__members__.values()
    ids = {status: _mermaid_id(at, status) for at, status in enumerate(members)}
    arrows: dict[tuple[str, str], list[str]] = {}
    for row in lifecycle.rows:
        label = row.event.__name__ + (" (retired)" if row.retired else "")
        if notes is not None:
            label += f" {notes.rows.get((row.source.name, row.event.__name__), '')}"
        arrows.setdefault((ids[row.source], ids[row.target]), []).append(label.rstrip())
    return "\n".join(
        [
            "stateDiagram-v2",
            *(
                f'    state "{status.name}" as {id}'
                for status, id in ids.items()
                if id != status.name or status in lifecycle.reserved
            ),
            f"    [*] --> {ids[lifecycle.new]}",
            *(f"    {a} --> {b}: {'<br>'.join(labels)}" for (a, b), labels in arrows.items()),
            *(f"    {id} --> [*]" for status, id in ids.items() if status in lifecycle.final),
            *(line for status, id in ids.items() for line in _mermaid_note(status, id, notes)),
            "",
        ]
    )


def _mermaid_note(status: Enum, id: str, notes: Notes | None) -> Iterable[str]:
    lines = () if notes is None else notes.statuses.get(status.name, ())
    if not lines:
        return ()
    return (f"    note right of {id}", *(f"        {line}" for line in lines), "    end note")


def _mermaid_id(at: int, status: Enum) -> str:
    """The member's name, or a number where Mermaid would take it for a word of its own."""
    plain = status.name.isascii() and status.name.isidentifier()
    return status.name if plain and status.name.lower() not in _MERMAID_WORDS else f"s{at}"


def _in_order(lifecycle: AnyLifecycle, statuses: Iterable[Enum]) -> list[str]:
    chosen = set(statuses)
    return [status.name for status in lifecycle.statuses if status in chosen]
