"""The table of algorithms: its arithmetic, and that the page about scheduling shows what it prints.

The page is compared with the files of `data/wfinstances` in the directory that STATELOG_SHARED
names, or in `../shared` beside the tree; without them with nothing.
"""

from __future__ import annotations

import re

import pytest

from statelog.domain.planning.algorithms import ALGORITHMS
from tests.bench import planning
from tests.domain.planning.graphs import diamond, machines, problem
from tests.house.repo import ROOT

PAGE = ROOT / "docs" / "explanation" / "scheduling.md"


def blocks() -> list[list[list[str]]]:
    """The tables of the page, as cells."""
    found = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    return [cells(block) for block in found]


def cells(text: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in text.strip().splitlines()]


def test_the_least_is_the_critical_path_where_everything_is_fastest():
    """6, 20 and 3 seconds, on a machine that is two and a half times as fast as the reference."""
    assert planning.least(problem(diamond(), machines(4))) == pytest.approx(29 / 2.5)


def test_without_the_files_a_small_workflow_takes_their_place(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "FILES", tmp_path)
    rows = planning.measure(quick=True)
    assert {row.workflow for row in rows} == {"small"}
    assert [row.algorithm.partition(",")[0] for row in rows] == [*ALGORITHMS, "moheft"]
    for row in rows:
        assert row.activities == 10
        assert row.gap >= 0
        assert row.simulated > 0
        assert row.planning_ms > 0
    fastest, cheapest = rows[-2:]
    assert fastest.makespan < cheapest.makespan
    assert fastest.cost > cheapest.cost


def test_growth_is_measured_at_every_size_of_a_quick_run():
    rows = planning.growth(quick=True)
    assert [len(row.planning_ms) for row in rows] == [2, 2, 2]
    head, *body = cells(planning.growth_table(rows))
    assert head == ["heft on", "100", "1,000"]
    assert [row[0] for row in body] == ["fork-join", "montage", "random"]


def test_the_page_about_scheduling_shows_what_is_printed():
    """All but the planning times, which are those of one machine."""
    if not planning.FILES.exists():
        pytest.skip(f"there is no {planning.FILES}; STATELOG_SHARED may name another place")
    shown, growth = blocks()
    printed = cells(planning.table(planning.measure(quick=True)))
    assert [row[:-1] for row in shown] == [row[:-1] for row in printed]
    assert growth[0] == ["heft on", "100", "1,000", "10,000"]
    assert "make bench" in PAGE.read_text(encoding="utf-8")
