"""Which mutants of lifecycles the suite kills, each tried in a process of its own.

`python -m tests.domain.mutation [LIFECYCLE ...]` prints a table, then by name what nothing kills,
and what only the page kills that is written by hand. Tests that are made from the tables themselves
(`lifecycle_test`) do not count. Added rows are tried once for each pair of status and event.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from statelog.domain.lifecycle import AnyLifecycle
from statelog.infrastructure.testing.mutants import Mutant, mutants
from tests.domain.test_lifecycles_page import LIFECYCLES, WRITTEN, compare

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    *("tests/domain", "tests/projections", "tests/model/test_log.py"),
    *("tests/infrastructure/queue/test_queue.py", "tests/infrastructure/planning/test_sessions.py"),
)
DERIVED = {"test_lifecycles.py", "test_lifecycles_page.py", "test_mutants.py"}
SECONDS = 60
"""A mutant that makes the tests run longer than this is killed by that."""
SLOW = 8
"""Seconds from which on a test is left out: there are others."""

Pair = tuple[str, str, str]
"""Lifecycle, event and status of one look-up."""


@dataclass
class Tally:
    """Of one lifecycle: its mutants, those that cannot be built, and which the rest are.

    `tried` are those that the tests of behaviour were run against, `behaviour` those of them that
    were killed by that, `page` those that the page kills, `left` those that neither kills.
    """

    mutants: int = 0
    unbuildable: int = 0
    tried: list[str] = field(default_factory=list)
    behaviour: list[str] = field(default_factory=list)
    page: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def noticed(mutant: Mutant) -> bool:
    """Whether the table that is written by hand tells this mistake."""
    with mutant.applied() as lifecycle:
        try:
            compare(WRITTEN[lifecycle.name], lifecycle)
        except AssertionError:
            return True
    return False


class Traced(dict[Any, Any]):
    """A dictionary of a table that tells what is looked up in it."""

    def __init__(self, held: Mapping[Any, Any], tell: Any) -> None:
        super().__init__(held)
        self.tell = tell

    def __getitem__(self, key: Any) -> Any:
        self.tell(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value, or another one."""
        self.tell(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.tell(key)
        return super().__contains__(key)


def trace(lifecycle: AnyLifecycle, seen: set[Pair]) -> None:
    """Note in `seen` each pair that is looked up in this lifecycle from now on."""
    statuses = {id(status): status.name for status in lifecycle.statuses}

    def inner(event: type, held: Mapping[int, Any]) -> Traced:
        return Traced(
            held,
            lambda key: seen.add((lifecycle.name, event.__name__, statuses.get(key, "?"))),
        )

    for name in ("targets", "_new_targets"):
        held = lifecycle.__dict__[name]
        lifecycle.__dict__[name] = Traced(
            {event: inner(event, held.get(event, {})) for event in lifecycle.events},
            lambda key: None,
        )


def asks(mutant: Mutant) -> set[Pair]:
    """The look-ups that a mutant answers otherwise than its original."""
    assert mutant.changed is not None
    name = mutant.original.name
    answers = []
    for lifecycle in (mutant.original, mutant.changed):
        rows = lifecycle.rows
        answers.append({(name, row.event.__name__, row.source.name): row.target for row in rows})
    before, after = answers
    return {pair for pair in before | after if before.get(pair) is not after.get(pair)}


class Killing:
    """The pytest plug-in that runs the collected tests against each mutant."""

    def __init__(self, lifecycles: Sequence[AnyLifecycle]) -> None:
        self.lifecycles = lifecycles
        self.tallies = {lifecycle.name: Tally() for lifecycle in lifecycles}

    def pytest_configure(self) -> None:
        """A failure is enough: nobody wants the smallest one."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("kill", phases=phases, database=None)
        settings.load_profile("kill")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is made from the tables."""
        items[:] = [item for item in items if item.path.name not in DERIVED]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests once as they are, then what may notice each mutant against it."""
        found = json.loads(_in_child(lambda: self._traced(session.items)))
        uses = [({tuple(pair) for pair in pairs}, seconds) for pairs, seconds in found]
        order = sorted(
            (at for at, (_, seconds) in enumerate(uses) if seconds < SLOW),
            key=lambda at: uses[at][1],
        )
        for lifecycle in self.lifecycles:
            tally, pairs = self.tallies[lifecycle.name], set()
            for mutant in mutants(lifecycle):
                tally.mutants += 1
                if mutant.changed is None:
                    tally.unbuildable += 1
                    continue
                by_page = noticed(mutant)
                if by_page:
                    tally.page.append(mutant.name)
                asked = asks(mutant)
                again = mutant.kind == "added" and not asked - pairs
                pairs |= asked
                if again and by_page:
                    continue
                tally.tried.append(mutant.name)
                chosen = [session.items[at] for at in order if uses[at][0] & asked]
                if chosen and _in_child(lambda m=mutant, c=chosen: _killed(m, c)) != b"no":
                    tally.behaviour.append(mutant.name)
                elif not by_page:
                    tally.left.append(mutant.name)
        return True

    def _traced(self, items: Sequence[pytest.Item]) -> bytes:
        """For each test: what it looks up, and its seconds."""
        seen: set[Pair] = set()
        for lifecycle in self.lifecycles:
            trace(lifecycle, seen)
        found = []
        for _item, reports in _run(items):
            # a test that fails without a mutant says nothing about one
            failed = any(report.failed for report in reports)
            used = [] if failed else sorted(seen)
            found.append((used, sum(report.duration for report in reports)))
            seen.clear()
        return json.dumps(found).encode()


def _run(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, list[pytest.TestReport]]]:
    for at, item in enumerate(items):
        following = items[at + 1] if at + 1 < len(items) else None
        yield item, runtestprotocol(item, log=False, nextitem=following)


def _killed(mutant: Mutant, items: Sequence[pytest.Item]) -> bytes:
    signal.alarm(SECONDS)
    with mutant.applied():
        failed = any(report.failed for _, reports in _run(items) for report in reports)
    return b"yes" if failed else b"no"


def _in_child(work: Any) -> bytes:
    """What work gives in a process of its own, which nothing outlives; empty when it dies."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            said = work()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(said)
        except BaseException as error:
            os.write(2, f"{error}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def tallies(lifecycles: Sequence[AnyLifecycle]) -> dict[str, Tally]:
    """What the tests of behaviour kill, by name of lifecycle."""
    killing = Killing(lifecycles)
    options = ["-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    paths = [str(ROOT / folder) for folder in PLACES]
    with (
        TemporaryDirectory(prefix="mutants-") as folder,
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
    ):
        # one for all: a child that just ends would leave its own behind
        options += ["--basetemp", f"{folder}/tests"]
        code = pytest.main([*options, *paths], plugins=[killing])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), code
    return killing.tallies


def main(names: Sequence[str]) -> int:
    """Print a table, then names; 1 when something is left."""
    found = tallies([each for each in LIFECYCLES if not names or each.name in names])
    rows = [
        ("lifecycle", "mutants", "unbuildable", "by the page", "tried", "by behaviour", "left"),
        *(
            (
                name,
                str(tally.mutants),
                str(tally.unbuildable),
                *(str(len(each)) for each in (tally.page, tally.tried, tally.behaviour)),
                str(len(tally.left)),
            )
            for name, tally in found.items()
        ),
    ]
    for name, *numbers in rows:
        print(f"{name:<15}" + "".join(f"{number:>14}" for number in numbers))
    built = sum(tally.mutants - tally.unbuildable for tally in found.values())
    left = sum(len(tally.left) for tally in found.values())
    print(f"killed {built - left} of {built} mutants, {100 * (built - left) / built:.1f} %")
    for tally in found.values():
        print(*(f"left: {name}\n" for name in tally.left), sep="", end="")
        only = [name for name in tally.tried if name not in tally.behaviour + tally.left]
        print(*(f"by the page alone: {name}\n" for name in only), sep="", end="")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
