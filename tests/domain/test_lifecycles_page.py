"""The tables written by hand in `docs/reference/lifecycles.md` are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from statelog.domain.describe import markdown
from statelog.domain.erasure import ERASURE
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.slot import SLOT
from statelog.domain.execution.step_lifecycle import STEP
from statelog.domain.lifecycle import AnyLifecycle
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN
from statelog.domain.planning.session import SESSION
from statelog.domain.queue.job import JOB
from statelog.domain.runs.handle import HANDLE
from statelog.domain.runs.run import RUN
from statelog.domain.runs.task import TASK
from statelog.domain.workflows.definitions import KINDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "lifecycles.md"
LIFECYCLES = (
    PLAN.lifecycle,
    SLOT.lifecycle,
    ATTEMPT.lifecycle,
    STEP,
    *(kind.aggregate.lifecycle for kind in KINDS.values()),
    JOB.lifecycle,
    SESSION.lifecycle,
    ALGORITHM_RUN.lifecycle,
    RUN.lifecycle,
    TASK,
    HANDLE,
    ERASURE.lifecycle,
)

HEADING = re.compile(r"^## `(\w+)`$", re.M)
ROW = re.compile(r"^\| `([\w.]+)`( \(retired\))? \| ([A-Z_, ]+) \| (\w+) \|$", re.M)
ENDS = re.compile(r"^Final: ([\w, ]+)\. Reserved: ([\w, ]+)\.$", re.M)

Rows = list[tuple[str, str, str, bool]]


def sections(text: str) -> dict[str, str]:
    """The text below each heading that is a lifecycle's name."""
    _, *parts = HEADING.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def rows(text: str) -> Rows:
    """Every row of a section's table, one for each status a row comes from."""
    assert len(ROW.findall(text)) == len(re.findall(r"^\| ", text, re.M)) - 1, (
        "a row of the page does not parse"
    )
    return [
        (event, source, source if target == "same" else target, bool(retired))
        for event, retired, sources, target in ROW.findall(text)
        for source in sources.split(", ")
    ]


def ends(text: str) -> tuple[set[str], set[str]]:
    """Final and reserved statuses of a section."""
    (found,) = ENDS.findall(text)
    final, reserved = (set(part.split(", ")) - {"none"} for part in found)
    return final, reserved


def declared(lifecycle: AnyLifecycle) -> Rows:
    return [
        (row.event.stored_name, row.source.name, row.target.name, row.retired)
        for row in lifecycle.rows
    ]


def compare(written: str, lifecycle: AnyLifecycle) -> None:
    """Fails with the rows that only one side has."""
    page, code = rows(written), declared(lifecycle)
    assert len(page) == len(set(page)), "the page says a row twice"
    assert {"only page": set(page) - set(code), "only code": set(code) - set(page)} == {
        "only page": set(),
        "only code": set(),
    }
    final = {status.name for status in lifecycle.final}
    reserved = {status.name for status in lifecycle.reserved}
    assert ends(written) == (final, reserved)


WRITTEN = sections(PAGE.read_text(encoding="utf-8"))


def test_every_lifecycle_has_a_section():
    """And no section describes what is not there."""
    assert list(WRITTEN) == [lifecycle.name for lifecycle in LIFECYCLES]


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.name)
def test_the_rows_are_those_of_the_page(lifecycle: AnyLifecycle):
    """Each row, each final and each reserved status, in both directions."""
    compare(WRITTEN[lifecycle.name], lifecycle)


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.name)
def test_every_status_is_on_the_page(lifecycle: AnyLifecycle):
    """A status nobody wrote about is a status nobody decided on."""
    words = set(re.findall(r"\b[A-Z]{3,}\b", WRITTEN[lifecycle.name]))
    assert {status.name for status in lifecycle.statuses} <= words


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("held` | FREE | HELD", "held` | FREE | REPORTING"),
        ("held` | FREE | HELD", "held` | FREE, HELD | HELD"),
        ("| `execution.slot.gave_up` | REPORTING | same |\n", ""),
        ("`execution.slot.gave_up` |", "`execution.slot.gave_up` (retired) |"),
        ("Final: none", "Final: FREE"),
        ("Reserved: none", "Reserved: HELD"),
    ],
    ids=["retargeted", "added", "removed", "retired", "final", "reserved"],
)
def test_a_page_that_differs_is_found(right: str, wrong: str):
    """Each kind of difference, on a copy of the page's own text."""
    assert right in WRITTEN["slot"]
    with pytest.raises(AssertionError):
        compare(WRITTEN["slot"].replace(right, wrong), SLOT.lifecycle)


def test_what_describe_prints_is_what_the_page_reads():
    """The printed table and the written one have one format."""
    compare(markdown(STEP), STEP)
