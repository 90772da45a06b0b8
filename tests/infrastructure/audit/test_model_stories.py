"""What the model finds by exploring, the audit finds in the log of it, by the same name."""

from __future__ import annotations

from random import Random

import pytest

from statelog.domain.execution import invariants
from statelog.infrastructure.audit.conformance import audit_rows
from statelog.infrastructure.audit.streams import OWNERS
from tests.infrastructure.audit.legal import rows_of, rules
from tests.model.bugs import BUGS, Bug
from tests.model.test_seeded_bugs import caught

RULES = {rule.name for rule in invariants.RULES} - {invariants.TOGETHER}
"""A fold that tears outcome and token apart leaves no trace in the log: the event has both."""

OTHERWISE = {"steps are in streams of their own": OWNERS}
"""Bugs whose log is wrong for a simpler reason."""


@pytest.mark.parametrize(
    "bug", [bug for bug in BUGS if bug.caught_by in RULES], ids=lambda bug: bug.what
)
def test_the_log_of_a_bug_is_wrong_by_the_same_name(bug: Bug):
    """The shortest story of each seeded bug, written into a log."""
    story = caught(bug).story
    found = audit_rows(rows_of([move.appended for move in story], Random(0)), rules())
    assert OTHERWISE.get(bug.what, bug.caught_by) in found.counts
