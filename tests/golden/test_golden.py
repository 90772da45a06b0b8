"""Logs that earlier releases wrote are read by this one, to the byte (house rule: golden logs)."""

from __future__ import annotations

from statelog.domain.event import event_types
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.slot import SLOT
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN
from statelog.domain.planning.session import SESSION
from statelog.domain.queue.job import JOB
from statelog.domain.runs.run import RUN
from statelog.domain.workflows.definitions import KINDS
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.testing import golden_logs, golden_test, shapes_test
from statelog.infrastructure.testing.golden import Golden
from tests.golden.record import HERE
from tests.house.test_events_page import declared

LOGS = sorted(HERE.glob("*.db"))
DEFINED = tuple(kind.aggregate for kind in KINDS.values())
AGGREGATES = (PLAN, SLOT, ATTEMPT, *DEFINED, JOB, SESSION, ALGORITHM_RUN, RUN)

golden = golden_logs(HERE)
test_golden = golden_test(HERE, aggregates=AGGREGATES, views=all_views())
test_shapes = shapes_test(HERE / "shapes.json", events=declared().values())


def test_there_is_a_golden_log_of_every_domain() -> None:
    """One by the plans that are run, one by those that are scheduled first."""
    assert [path.stem for path in LOGS][:2] == ["001-reads-qc", "002-reads-shell"]


def test_the_logs_hold_every_status_that_matters(golden: Golden) -> None:
    """A log in which all goes well says little: both have failures and somebody who calls off."""
    names = {recorded.name for recorded in golden.journal.read()}
    assert {name.split(".")[0] for name in names} <= {book.split(".")[2] for book in RULEBOOKS}
    words = {name.rsplit(".", 1)[1] for name in names}
    assert words & {"failed", "step_failed"}
    assert words & {"cancelled", "released"}


def test_every_event_has_a_recorded_shape() -> None:
    """Also one that is declared in a module which the page of events does not know yet."""
    ours = {n for n, c in event_types().items() if c.__module__.startswith("statelog.domain.")}
    assert ours == set(declared())
