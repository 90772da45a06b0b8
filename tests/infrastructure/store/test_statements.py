"""A fault at every statement: the right error or success, and never a wrong state."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import StoredEvent

from statelog.domain import Conflict, OutcomeUnknown, Refused, StatelogError, StoreError
from statelog.infrastructure import view_rebuild
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import connections
from statelog.infrastructure.store.backup import back_up as backup
from statelog.infrastructure.testing.views_contract import STORY, balances, tell
from statelog.infrastructure.views import Views
from tests.amounts import amount
from tests.house.repo import ROOT
from tests.infrastructure.store.counter import COUNTER, add, start, stop
from tests.infrastructure.store.faulty import FAULTS, QUICK, Fault, Plan, failing
from tests.infrastructure.store.test_processes import check

ADDED = "contract.counter.added"
COMMAND = "the-command"
HOUR = 3_600_000_000


@dataclass(frozen=True)
class Operation:
    """Something a user does with a store: `act` on a copy, then `landed` says how often it took.

    `whole` is how often it takes when it succeeds.
    """

    act: Callable[[Path], Any]
    landed: Callable[[Journal], int] = lambda journal: 0
    whole: int = 0


def of_command(journal: Journal) -> int:
    return len(journal.find(COMMAND))


def one_event(store: Path) -> None:
    with Journal(store) as journal:
        journal.execute(COUNTER, "a", add, actor="bob", command=COMMAND)


def several_streams(store: Path) -> None:
    with Journal(store) as journal:
        a, b, c = (journal.load(COUNTER, name) for name in "abc")
        changes = a.decide(add, times=2), b.decide(add), c.decide(start)
        journal.commit(*changes, journal.load(COUNTER, "d").guard(), actor="bob", command=COMMAND)


def again_without_asking(store: Path) -> None:
    """A second append of one process, which trusts what its first one left."""
    with Journal(store) as journal:
        loaded = journal.execute(COUNTER, "a", add, actor="bob", command="first").loaded[0]
        journal.commit(loaded.decide(add), actor="bob", command=COMMAND)


def repeated(store: Path) -> None:
    with Journal(store) as journal:
        journal.execute(COUNTER, "a", add, actor="bob", command="before")


def refused(store: Path) -> None:
    with Journal(store) as journal, pytest.raises(Refused):
        journal.execute(COUNTER, "stopped", add, actor="bob")


def reading(store: Path) -> None:
    with Journal(store) as journal:
        assert journal.load(COUNTER, "a").version == 2
        assert journal.load(COUNTER, "a", upto=1).version == 1
        assert len(list(journal.history("counter"))) == 5
        assert len(list(journal.history("counter/a", names=["contract.counter.added"]))) == 1
        assert len(list(journal.read(limit=3))) == 3
        assert journal.position_at(0) == 0
        assert list(journal.latest("counter", "contract.counter.added"))
        assert journal.stray_positions() == []
        assert len(journal.refusals()) == 1
        journal.health(check=True)


def leases(store: Path) -> None:
    with Journal(store) as journal:
        journal.leases.renew("counter/a", 2, "me", HOUR)
        assert not journal.leases.take("counter/a", 2, HOUR - 1)
        assert journal.leases.take("counter/a", 2, HOUR)
        assert [lease.stream for lease in journal.leases.all()] == ["counter/a"]
        journal.leases.forget(2 * HOUR)


def made(store: Path) -> None:
    with Journal(store.with_name("new.db")) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")


def read_only(store: Path) -> None:
    with Journal(store, read_only=True) as journal:
        assert journal.load(COUNTER, "a").version == 2


def caught_up(store: Path) -> None:
    with Journal(store) as journal, Views(journal, [balances()]) as views:
        views.catch_up()
        assert views.get("balances", "a")


def rebuilt(store: Path) -> None:
    with Journal(store) as journal, Views(journal, [balances()]) as views:
        views.rebuild()


def rebuilt_aside(store: Path) -> None:
    """As several processes do, but with the rows that are there already."""

    def lay_aside(view: Any, *_: Any) -> bool:
        view.store.stage(view.format, [list(view.store.rows(view.format))])
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_rebuild, "lay_aside", lay_aside)
        caught_up(store)
        rebuilt(store)


def looked_at(store: Path) -> None:
    with Journal(store) as journal, Views(journal, [balances()]) as views:
        assert views.verify() == []
        assert dict(views.rows("balances"))
        assert views.status()


def viewed_in_memory(store: Path) -> None:
    with Journal() as journal:
        tell(journal, STORY)
        with Views(journal, [balances()]) as views:
            views.catch_up()
            assert views.get("balances", "a")


def views_made(store: Path) -> None:
    for path in store.parent.glob("s.db.views.db*"):
        path.unlink()
    caught_up(store)


def checkpointed(store: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "CHECKPOINT_PAGES", 1)
        one_event(store)


def through_eventsourcing(store: Path) -> None:
    with Journal(store) as journal:
        version = journal.load(COUNTER, "b").version + 1
        journal.recorder.insert_events([StoredEvent("counter/b", version, ADDED, b'{"by":1}')])


def erased(store: Path) -> None:
    """An event and the payloads that go with it, and then the bytes of the WAL."""
    with Journal(store) as journal:
        change = journal.load(COUNTER, "b").decide(add)
        position = next(iter(journal.history("counter/stopped"))).position
        journal.rewrite(change, actor="bob", erase=[position])
        assert journal.mentions("nobody", "counter/b", "") is None
        assert journal.sweep()


def put_back(store: Path) -> None:
    """What was there already stays as it is."""
    with Journal(store) as journal:
        change = journal.load(COUNTER, "b").decide(add)
        first = next(journal.rows(upto=1))
        journal.rewrite(change, actor="bob", put_back={1: first.data or b""})


def backed_up(store: Path) -> None:
    copy = store.with_name("copy.db")
    backup(store, copy)


OPERATIONS = {
    "one event": Operation(one_event, of_command, 1),
    "several streams": Operation(several_streams, of_command, 4),
    "again without asking": Operation(again_without_asking, of_command, 1),
    "repeated": Operation(repeated, lambda journal: len(journal.find("before")), 1),
    "refused": Operation(refused),
    "reading": Operation(reading),
    "leases": Operation(leases),
    "made": Operation(made),
    "read only": Operation(read_only),
    "caught up": Operation(caught_up),
    "rebuilt": Operation(rebuilt),
    "rebuilt aside": Operation(rebuilt_aside),
    "looked at": Operation(looked_at),
    "views made": Operation(views_made),
    "viewed in memory": Operation(viewed_in_memory),
    "checkpointed": Operation(checkpointed, of_command, 1),
    "through eventsourcing": Operation(through_eventsourcing),
    "backed up": Operation(backed_up),
    "erased": Operation(erased),
    "put back": Operation(put_back),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a few streams, a refusal, and an account for the view."""
    folder = tmp_path_factory.mktemp("prepared")
    with Journal(folder / "s.db") as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.execute(COUNTER, "a", add, actor="bob", command="before")
        journal.execute(COUNTER, "b", start, actor="bob")
        journal.execute(COUNTER, "stopped", start, actor="bob")
        journal.execute(COUNTER, "stopped", stop, actor="bob")
        with pytest.raises(Refused):
            journal.execute(COUNTER, "stopped", add, actor="bob")
        with Views(journal, [balances()]) as views:
            tell(journal, STORY[:6])
            views.catch_up()
        tell(journal, STORY[6:])
    return folder


@pytest.fixture
def copies(
    prepared: Path, tmp_path: Path, damaged_store: Callable[[Path], None]
) -> Callable[[], Path]:
    """A new copy of that store for each try; some lose a payload that no erasure speaks of."""
    made: list[Path] = []

    def copy() -> Path:
        made.append(tmp_path / str(len(made)))
        shutil.copytree(prepared, made[-1])
        damaged_store(made[-1] / "s.db")
        return made[-1] / "s.db"

    return copy


def statements(operation: Operation, store: Path) -> list[tuple[str, str]]:
    """What an operation asks of SQLite when nothing fails."""
    with failing(Plan()) as plan:
        operation.act(store)
    return plan.seen


def tried(operation: Operation, store: Path, plan: Plan) -> StatelogError | None:
    """The error of an operation; whatever is not one of ours goes through and fails the test."""
    with failing(plan):
        try:
            operation.act(store)
        except StatelogError as error:
            return error
    return None


def judged(operation: Operation, store: Path, error: StatelogError | None) -> None:
    """The store is whole, holds what was said and nothing else, and the same again succeeds."""
    check(store)
    with Journal(store) as journal:
        landed = operation.landed(journal)
    if error is None:
        assert landed == operation.whole
    elif isinstance(error, OutcomeUnknown):
        assert landed in {0, operation.whole}
    else:
        assert isinstance(error, StoreError | Conflict)
        before = operation.whole if operation is OPERATIONS["repeated"] else 0
        assert landed == before, error
    store.with_name("copy.db").unlink(missing_ok=True)
    operation.act(store)
    with Journal(store) as journal, Views(journal, [balances()]) as views:
        assert operation.landed(journal) == operation.whole
        views.catch_up()
        assert views.verify() == []


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", QUICK, ids=lambda fault: fault.name)
def test_a_fault_at_each_statement(name: str, fault: Fault, copies: Callable[[], Path]):
    """In turn, on a fresh copy each time: never a half batch, a lie, or a store that stays shut."""
    operation = OPERATIONS[name]
    count = len(statements(operation, copies()))
    assert count
    for at in range(count):
        store = copies()
        plan = Plan(at, fault)
        error = tried(operation, store, plan)
        assert len(plan.seen) > at
        judged(operation, store, error)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", amount(FAULTS, FAULTS[1:2]), ids=lambda fault: fault.name)
def test_every_fault_at_each_statement(name: str, fault: Fault, copies: Callable[[], Path]):
    """The same with all of them."""
    test_a_fault_at_each_statement(name, fault, copies)


CALLS = {"execute", "executemany", "executescript"}
ELSEWHERE = ("postgres", "drivers")
"""Another database, whose faults have tests of their own, and what only hands statements on."""
FILES = (
    *(
        path
        for path in sorted((ROOT / "infrastructure" / "store").glob("*.py"))
        if not path.name.startswith(ELSEWHERE)
    ),
    *sorted((ROOT / "infrastructure").glob("view*.py")),
    ROOT / "infrastructure" / "catch_up.py",
)


def call_sites() -> set[str]:
    """Each call in the product's stores that hands SQLite a statement: file, first and last line.

    But ROLLBACK, which faults lead to, and which is among what they are tried on.
    """
    found = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CALLS
                and "ROLLBACK" not in ast.unparse(node)
            ):
                name = path.relative_to(ROOT).as_posix()
                found.add(f"{name}:{node.lineno}-{node.end_lineno}")
    return found


def test_every_statement_of_ours_was_one_of_them(copies: Callable[[], Path]):
    """What the tests above make fail is all that there is, counted by where it is called from."""
    hit = {place for each in OPERATIONS.values() for _, place in statements(each, copies())}
    missed = []
    for site in sorted(call_sites()):
        name, _, span = site.rpartition(":")
        first, last = map(int, span.split("-"))
        if not any(f"{name}:{line}" in hit for line in range(first, last + 1)):
            missed.append(site)
    assert missed == []
