"""The benchmark's own arithmetic, and that the page about speed shows what it prints."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tests.bench import (
    appending,
    auditing,
    chart,
    exploring,
    growing,
    rebuilding,
    replaying,
    sizes,
    stepping,
    syncs,
    takeover,
    waking,
)
from tests.bench.result import HEAD, Line, at_most, faster, table
from tests.bench.rounds import Effort, interleaved, ratio
from tests.house.repo import ROOT

PAGE = ROOT / "docs" / "explanation" / "performance.md"


def test_a_ratio_is_the_median_of_those_of_the_rounds():
    """Not the ratio of medians: a round in which the machine was slow is slow for both."""
    times = {"statelog": [1.0, 10.0, 2.0], "raw": [1.0, 5.0, 4.0]}
    assert ratio(times, "statelog", "raw") == 1.0


def test_goals_look_both_ways():
    """At most so many times a limit, and at least so many times faster than a peer."""
    times = {"statelog": [2.0], "raw": [1.0], "peer": [3.0]}
    assert at_most("B0", "", times, "raw", 2.0).reached
    assert not at_most("B0", "", times, "raw", 1.9).reached
    assert faster("B0", "", times, "peer", 1.5, "raw").reached
    missed = faster("B0", "", times, "peer", 1.6, "raw")
    assert (missed.reached, missed.figure, missed.limit) == (False, 1.5, 3.0)


def test_contestants_take_turns():
    """Each goes first in turn, and the round that warms up is not counted."""
    order: list[str] = []

    def turn(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    turns = {"a": lambda: turn("a", 1), "b": lambda: turn("b", 2)}
    assert interleaved(turns, Effort(2, 60)) == {"a": [1, 1], "b": [2, 2]}
    assert "".join(order) == "baabba"


def test_time_runs_out_only_after_enough_rounds():
    """Three rounds, if one alone does not take twice the time there is."""
    effort = Effort(rounds=9, seconds=10)
    assert not effort.enough(8, 9)
    assert effort.enough(9, 1)
    assert not effort.enough(2, 11)
    assert effort.enough(3, 11)
    assert not effort.enough(0, 21)
    assert effort.enough(1, 21)


def test_syncs_are_the_calls_of_both_kinds():
    """The fourth column of what strace sums up, errors or not."""
    summary = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 90.00    0.008072          73       110           fdatasync
 10.00    0.000100          25         4         1 fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.008172          74       114         1 total
"""
    assert syncs.total(summary) == 114


def test_what_cannot_be_measured_is_said():
    """A line without a figure shows its note, and counts as neither reached nor missed."""
    line = Line("B0", "w", "peer", ">= 2 x", None, None, note="not installable")
    assert table([line]).splitlines()[1].split("  ")[-1] == "-"
    assert "not installable" in table([line])


def test_a_wait_ends_with_the_first_look_that_has_the_position():
    """A look may have several commits, and one that came before the commit's end waited nothing."""
    stamps = [(1, 0), (2, 5_000), (4, 21_000), (5, 20_000)]
    committed = [(2, 3_000), (3, 11_000), (4, 20_000), (5, 30_000)]
    assert list(waking._waits(committed, stamps)) == [2.0, 10.0, 1.0, 0.0]


def test_the_picture_has_a_line_for_each_work_and_a_point_for_each_size():
    """It is well-formed, and what costs more is drawn higher."""
    points = {"an <append>": {10: 1.0, 1000: 1.5}, "a load": {10: 1.0, 100: 1.0, 1000: 1.0}}
    root = ElementTree.fromstring(chart.growth(points, 1.2))
    space = "{http://www.w3.org/2000/svg}"
    lines = [line.get("points", "").split() for line in root.iter(f"{space}polyline")]
    assert [len(line) for line in lines] == [2, 3]
    assert len(list(root.iter(f"{space}circle"))) == 5
    ends = [tuple(map(float, line[-1].split(","))) for line in lines]
    assert ends[0][0] == ends[1][0]
    assert ends[0][1] < ends[1][1]


def test_the_page_about_speed_shows_growth():
    """The picture is one that the benchmark drew: it has a line for each row of B9."""
    picture = PAGE.parents[1] / "images" / "growth.svg"
    assert "../images/growth.svg" in PAGE.read_text(encoding="utf-8")
    text = picture.read_text(encoding="utf-8")
    assert all(work in text for work in sizes.WORKS)
    assert f"goal: at most {sizes.LIMIT}" in text


def test_the_baseline_of_a_rebuild_shows_the_steps_that_the_view_shows(tmp_path):
    """Whatever it leaves out, it folds the same events to the same steps."""
    store = tmp_path / "log.db"
    auditing.fill(store, 1)
    rebuilding._ours(store, tmp_path / "log.db.statelog")
    rebuilding._raw(store, tmp_path / "log.db.raw")
    rebuilding._compare(store)


def test_the_page_about_speed_has_the_rows_that_are_printed():
    """Its table is what `make bench` printed: the same rows, in the same order, and goals."""
    text = PAGE.read_text(encoding="utf-8")
    assert "make bench" in text
    (block,) = re.findall(r"```text\n(.*?)```", text, re.S)
    head, *rows = (re.split(r" {2,}", line.strip()) for line in block.strip().splitlines())
    assert head == [word for word in HEAD if word]
    assert [(row[0], row[1], row[-2]) for row in rows] == [
        ("B2", replaying.WORK, "<= 1.5 x"),
        ("B2", replaying.WORK, ">= 8 x"),
        ("B2", replaying.ATTEMPT_WORK, "no goal"),
        ("B3", appending.WORK, "<= 1.6 x"),
        ("B3", appending.WORK, ">= 1.8 x"),
        ("B6", stepping.WORK, "<= 1.5 x"),
        ("B6", stepping.WORK, ">= 1.5 x"),
        ("B6", stepping.WORK, ">= 5 x"),
        ("B6", syncs.WORK, syncs.WANTED),
        ("growth", f"a step of a chain of {growing.LONG:,}", f"<= {growing.LIMIT} x"),
        ("takeover", takeover.WORK, takeover.WANTED),
        ("audit", auditing.WORK, auditing.WANTED),
        ("explore", exploring.WORK, exploring.WANTED),
        ("B5", rebuilding.WORK, f">= {rebuilding.FASTER} x"),
        ("B5", rebuilding.WORK, f">= {rebuilding.PEER_FASTER} x"),
        ("B5", rebuilding.MEMORY_WORK, rebuilding.WANTED),
        *(("B9", sizes.named(work, auditing.FULL), f"<= {sizes.LIMIT} x") for work in sizes.WORKS),
        ("live", waking.HEARS, "no goal"),
        ("live", waking.SHOWS, "no goal"),
        ("live", waking.IDLES, waking.WANTED),
    ]
