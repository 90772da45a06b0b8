"""What is printed about a lifecycle is what it declares."""

from __future__ import annotations

import json
from enum import Enum

from statelog.domain import Event, Lifecycle
from statelog.domain.describe import data, markdown, mermaid
from tests.domain.desk import LIFECYCLE


def test_data_is_the_whole_table_as_json():
    """Every row, under the stored names, and the marks on statuses."""
    described = json.loads(json.dumps(data(LIFECYCLE)))
    assert {key: value for key, value in described.items() if key != "rows"} == {
        "name": "ticket",
        "new": "NEW",
        "statuses": ["NEW", "OPEN", "CLOSED", "LOST"],
        "final": ["CLOSED"],
        "reserved": ["LOST"],
    }
    assert len(described["rows"]) == 5
    assert described["rows"][-1] == {
        "event": "test.desk.merged",
        "type": "Merged",
        "from": "OPEN",
        "to": "CLOSED",
        "retired": True,
    }


def test_markdown_is_a_table():
    """With rows that keep the status, and retired ones, told apart."""
    assert markdown(LIFECYCLE) == (
        "| event | from | to |\n"
        "|---|---|---|\n"
        "| `test.desk.opened` | NEW | OPEN |\n"
        "| `test.desk.noted` | OPEN | same |\n"
        "| `test.desk.closed` | OPEN | CLOSED |\n"
        "| `test.desk.noted` | CLOSED | same |\n"
        "| `test.desk.merged` (retired) | OPEN | CLOSED |\n"
        "\n"
        "Final: CLOSED. Reserved: LOST.\n"
    )


def test_mermaid_is_a_state_diagram():
    """One arrow from status to status, with all its events; reserved statuses stand alone."""
    assert mermaid(LIFECYCLE) == (
        "stateDiagram-v2\n"
        '    state "LOST" as LOST\n'
        "    [*] --> NEW\n"
        "    NEW --> OPEN: Opened\n"
        "    OPEN --> OPEN: Noted\n"
        "    OPEN --> CLOSED: Closed<br>Merged (retired)\n"
        "    CLOSED --> CLOSED: Noted\n"
        "    CLOSED --> [*]\n"
    )


def test_mermaid_does_not_take_a_status_for_a_word_of_its_own():
    """Such a status gets a number, and its name as the label."""

    class Began(Event, name="test.describe.began"):
        pass

    road = Enum("road", {"START": 1, "END": 2, "dead end": 3})
    drawn = mermaid(
        Lifecycle(road["START"], [(Began, road["START"], road["END"])], reserved=[road["dead end"]])
    )
    assert '    state "END" as s1\n    state "dead end" as s2\n' in drawn
    assert "    START --> s1: Began\n" in drawn


def test_nothing_to_say_is_said():
    """No final and no reserved status."""

    class Turned(Event, name="test.describe.turned"):
        pass

    way = Enum("way", ["IN", "OUT"])
    assert markdown(Lifecycle(way["IN"], [(Turned, way["IN"], way["OUT"])])).endswith(
        "Final: none. Reserved: none.\n"
    )
