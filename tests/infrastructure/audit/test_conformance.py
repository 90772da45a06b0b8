"""No false alarm on what keeps the rules, and each thing that is wrong is found by its own name."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.execution import invariants, rulebook
from statelog.infrastructure.audit import envelope, streams
from statelog.infrastructure.audit.conformance import audit_rows
from statelog.infrastructure.audit.rules import load
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.store.row import Row
from tests.house.repo import ROOT
from tests.infrastructure.audit.forging import FORGERIES, Log, renumbered
from tests.infrastructure.audit.legal import legal, rules

TRIES = 200
LONG = 300 if os.environ.get("STATELOG_SHORT") else 10_000
LOGS = 60
FRAMEWORK = {
    value
    for module in (envelope, streams)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str) and not name.startswith("_")
}
"""Rules of every log, whatever it is about."""


@cache
def logs() -> tuple[list[Row], ...]:
    """Logs that are forged: long ones, in which much happens."""
    return tuple(legal(seed, 120) for seed in range(LOGS))


def wrong(forger, number: int) -> str | None:
    """Forge a log; what is not found as it should be, None when all is well."""
    rule, random = FORGERIES[forger], Random(f"{forger.__name__}-{number}")
    for _ in range(1000):
        forged = forger(Log(list(random.choice(logs())), random))
        if forged is None:
            continue
        rows, at = forged
        found = audit_rows(rows, rules())
        places = {each.position for each in found.violations if each.rule == rule}
        if rows[at].position in places:
            return None
        return f"{forger.__name__} {number} at {rows[at].position}: {sorted(found.counts)}"
    return f"{forger.__name__} {number}: no log has a place for it"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 200))
def test_a_legal_log_breaks_no_rule(seed: int, moves: int):
    """Random stories of the coordinator's model, with crashes and an operator."""
    found = audit_rows(legal(seed, moves), rules())
    assert list(map(str, found.violations)) == []


def test_every_forgery_is_found_by_name():
    """200 tries and more, every kind in turn."""
    tries = [(forger, n) for forger in FORGERIES for n in range(1 + TRIES // len(FORGERIES))]
    assert len(tries) >= TRIES
    assert len(FORGERIES) >= 20
    assert [said for forger, n in tries if (said := wrong(forger, n))] == []


@pytest.mark.long
@pytest.mark.parametrize("forger", FORGERIES, ids=lambda forger: forger.__name__)
def test_every_forgery_is_found_by_name_each_time(forger):
    """10,000 of each kind, 300 in the short form."""
    assert [said for n in range(LONG) if (said := wrong(forger, n))] == []


def test_every_rule_has_a_forgery():
    """But one, which no log can break: `evolve` writes outcome and token as one."""
    named = {rule.name for family in rulebook.RULEBOOK.families for rule in family.rules}
    named |= {rule.name for each in rulebook.RULEBOOK.aggregates for rule in each.rules}
    of_dumps = {envelope.LINES, envelope.INTACT}
    assert set(FORGERIES.values()) == (named | FRAMEWORK) - {invariants.TOGETHER} - of_dumps


def test_what_happens_in_legal_logs():
    """Enough of it that no alarm means something."""
    seen = Counter(row.name for log in logs() for row in log)
    assert len(seen) >= 20
    assert seen["execution.plan.request_finished"] >= 30


def test_the_page_names_every_rule():
    """docs/how-to/audit-a-log.md lists each, but the model's, which their own page has."""
    page = (ROOT / "docs" / "how-to" / "audit-a-log.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (.+?) \|", page.split("## What is checked")[1], re.M)
    book = load(RULEBOOKS).book
    rules = [rule for each in book.aggregates for rule in each.rules]
    rules += [rule for family in book.families for rule in family.rules]
    declared = {rule.name for rule in rules} - {rule.name for rule in invariants.RULES}
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.says for rule in rules)
    named = [each for each in told if each != "rule" and not each.startswith("---")]
    assert sorted(named) == sorted(declared | FRAMEWORK)


def test_an_imported_attempt_never_had_the_slot():
    """Its envelope says so; the lifecycle still holds for it, the rules of plans do not."""
    rows = legal("imported", 120)
    attempts = [row for row in rows if "/attempt/" in row.stream]
    assert attempts
    alone = renumbered(attempts)
    assert audit_rows(alone, rules()).counts[invariants.NEVER_STARTS] >= 1
    stamped = renumbered(row._replace(meta='{"imported":"spool"}') for row in attempts)
    assert audit_rows(stamped, rules()).good
    twice = renumbered([stamped[0], *stamped])
    assert streams.TRANSITIONS in audit_rows(twice, rules()).counts
