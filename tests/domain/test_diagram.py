"""Diagrams of lifecycles: SVG that is well formed and shows every row, Mermaid that is valid."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from statelog.domain import describe, diagram
from statelog.domain.describe import Notes
from statelog.domain.lifecycle import AnyLifecycle
from statelog.infrastructure.cli.lifecycles import lifecycles

SVG = "{http://www.w3.org/2000/svg}"
LIFECYCLES = lifecycles()


def notes(lifecycle: AnyLifecycle) -> Notes:
    """Something to say of everything, with characters that XML needs escaped."""
    rows = {(row.source.name, row.event.__name__): '3 x, <fast> & "good"' for row in lifecycle.rows}
    return Notes(rows, {status.name: ["1 now", "a < b"] for status in lifecycle.statuses})


@pytest.mark.parametrize("name", LIFECYCLES)
def test_every_row_and_status_is_in_the_drawing(name: str):
    """A text for each status and each row, an arrow for each row that leads elsewhere."""
    lifecycle = LIFECYCLES[name]
    for said in (None, notes(lifecycle)):
        root = ElementTree.fromstring(diagram.svg(lifecycle, said))
        texts = [each.text or "" for each in root.iter(f"{SVG}text")]
        for status in lifecycle.statuses:
            assert any(text.startswith(status.name) for text in texts)
        for row in lifecycle.rows:
            assert any(row.event.__name__ in text for text in texts)
        leading = [row for row in lifecycle.rows if row.source is not row.target]
        curves = [each for each in root.iter(f"{SVG}path") if each.get("fill") == "none"]
        assert len(curves) == len(leading)


def boxes_of(root: ElementTree.Element) -> list[ElementTree.Element]:
    """The outlines of statuses."""
    return [each for each in root.iter(f"{SVG}rect") if each.get("rx") == "8"]


@pytest.mark.parametrize("name", LIFECYCLES)
def test_nothing_in_the_drawing_overlaps(name: str):
    """Boxes stand apart, texts have lines of their own, and all of it is inside the picture."""
    root = ElementTree.fromstring(diagram.svg(LIFECYCLES[name], notes(LIFECYCLES[name])))
    wide, high = float(root.get("width")), float(root.get("height"))
    boxes = [
        (float(each.get("y")), float(each.get("y")) + float(each.get("height")))
        for each in boxes_of(root)
    ]
    assert all(one[1] < other[0] for one, other in pairwise(boxes))
    places = [(each.get("x"), each.get("y")) for each in root.iter(f"{SVG}text")]
    assert len(set(places)) == len(places)
    edge = min(float(each.get("x")) + float(each.get("width")) for each in boxes_of(root))
    for each in root.iter(f"{SVG}text"):
        assert float(each.get("x")) + 7.3 * len(each.text) < wide
        inside = float(each.get("x")) < edge and each.get("class") in ("name", "note")
        if inside and each.text != name:
            assert float(each.get("x")) + 7.9 * len(each.text) < edge
        assert float(each.get("y")) < high


def test_two_ways_do_not_share_a_lane_where_both_run():
    """Vertical pieces of different pairs of statuses are apart, or end before the other begins."""
    for lifecycle in LIFECYCLES.values():
        root = ElementTree.fromstring(diagram.svg(lifecycle))
        ways: dict[str, list[tuple[float, float, str]]] = {}
        for each in root.iter(f"{SVG}path"):
            found = re.fullmatch(r"M[\d.]+ (\d+)H(\d+)V(\d+)H\d+", each.get("d"))
            if found:
                low, high = sorted((float(found[1]), float(found[3])))
                ways.setdefault(found[2], []).append((low, high, each.get("stroke")))
        for lane in ways.values():
            for low, high, colour in lane:
                others = [each for each in lane if each[2] != colour]
                assert all(other[1] < low or high < other[0] for other in others)


STATE = re.compile(r'state "[^"]+" as \w+')
ARROW = re.compile(r"(?:\[\*\]|\w+) --> (?:\[\*\]|\w+)(?:: [^\n;#]+)?")


@pytest.mark.parametrize("name", LIFECYCLES)
def test_mermaid_is_what_its_grammar_allows(name: str):
    """States, arrows and notes, one a line, whatever stands beside them."""
    lifecycle = LIFECYCLES[name]
    said = Notes(
        {(row.source.name, row.event.__name__): "3 x, median 4.2 s" for row in lifecycle.rows},
        {status.name: ["1 now", "refused 2 x: slot_owner"] for status in lifecycle.statuses},
    )
    first, *lines = describe.mermaid(lifecycle, said).splitlines()
    assert first == "stateDiagram-v2"
    inside = False
    for line in map(str.strip, lines):
        if inside:
            inside = line != "end note"
        elif line.startswith("note right of "):
            assert line.split()[-1].isidentifier()
            inside = True
        else:
            assert STATE.fullmatch(line) or ARROW.fullmatch(line), line
    assert not inside
