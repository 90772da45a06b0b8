"""What goes wrong with a server, and what a journal says: the right error, never a wrong state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from statelog.domain import Conflict, Invalid, NotFound, OutcomeUnknown, StoreError
from statelog.infrastructure.follow import POLL_S
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import appending
from statelog.infrastructure.store.postgres import PostgresRecorder
from statelog.infrastructure.store.postgres_address import shown
from statelog.infrastructure.store.postgres_connections import Connections
from statelog.infrastructure.store.postgres_health import postgres_fault
from tests.infrastructure.postgres.server import Server
from tests.infrastructure.store.counter import COUNTER, add, run, start

pytestmark = pytest.mark.servers


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    with Journal(url) as journal:
        yield journal


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresRecorder, "patience", 0.4)


def sql(url: str, *statements: str) -> list[Any]:
    """Run statements beside the library; the rows of the last."""
    with psycopg.connect(url, autocommit=True) as db:
        for statement in statements:
            found = db.execute(statement)
        return found.fetchall() if found.description else []


def end_sessions(server: Server) -> None:
    """End every session but this one."""
    with server.admin() as db:
        db.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchall()


def kind_of(act: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        act()
    return caught.value.kind


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("CREATE TABLE events (id INT)", "foreign"),
        ("CREATE TABLE statelog (id INT)", "foreign"),
        ("CREATE TABLE statelog (application_id INT, format INT, id UUID)", "foreign"),
        (
            "CREATE TABLE statelog AS SELECT 7 application_id, 1 format, gen_random_uuid() id",
            "foreign",
        ),
        (
            "CREATE TABLE statelog AS "
            "SELECT 1400138855 application_id, 2 format, gen_random_uuid() id",
            "newer",
        ),
        (
            "CREATE TABLE statelog AS "
            "SELECT 1400138855 application_id, 1 format, gen_random_uuid() id",
            "damaged",
        ),
    ],
)
def test_what_is_not_ours_is_refused(url: str, made: str, kind: str):
    """And left as it is."""
    sql(url, made)
    tables = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
    before = sql(url, tables)
    assert kind_of(lambda: Journal(url)) == kind
    assert sql(url, tables) == before


def test_other_tables_beside_a_store_are_no_matter(url: str):
    sql(url, "CREATE TABLE lunch (day INT)")
    with Journal(url) as journal:
        assert journal.head() == 0


def test_a_store_that_is_not_there(url: str, tmp_path: Path):
    """Whoever only reads makes none; a file neither."""
    for given in ({"read_only": True}, {"create": False}):
        with pytest.raises(NotFound) as caught:
            Journal(url, **given)
        assert caught.value.kind == "store"
    with pytest.raises(NotFound):
        Journal(tmp_path / "none.db", create=False)
    tables = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
    assert sql(url, tables) == [(0,)]


def test_many_make_one_store_at_once(url: str):
    """It is made once."""
    code = "journal = Journal(sys.argv[1]); print(journal.health()['store_id']); journal.close()"
    found: set[str] = set()
    threads = [threading.Thread(target=lambda: found.add(run(code, url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1


def test_a_place_that_cannot_be_used(server: Server):
    """Each error says why, and none shows a password."""
    with server.admin() as db:
        db.execute("CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert kind_of(lambda: Journal(server.url("old"))) == "foreign"
    nowhere = server.url("postgres", options="-csearch_path%3Dnowhere")
    assert kind_of(lambda: Journal(nowhere)) == "foreign"
    for wrong in (
        server.url("none", password="secret"),
        "postgresql://bob:secret@/x?host=/nowhere",
        "postgresql://bob:secret@127.0.0.1:1/x",
    ):
        with pytest.raises(StoreError) as caught:
            Journal(wrong)
        assert caught.value.kind == "io"
        assert "secret" not in str(caught.value)
    with pytest.raises(Invalid) as invalid:
        Journal("postgresql://bob:secret@/lab?nonsense=1")
    assert "secret" not in str(invalid.value)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://bob:a%40b@db/lab", "postgresql://bob@db/lab"),
        (
            "postgresql://db/lab?user=bob&password=x&port=1",
            "postgresql://db/lab?user=bob&password=***&port=1",
        ),
        ("postgresql:///lab", "postgresql:///lab"),
        ("postgres://bob@db:5432/lab", "postgres://bob@db:5432/lab"),
    ],
)
def test_people_see_no_password(url: str, seen: str):
    assert shown(url) == seen


def test_who_may_only_read(server: Server, url: str, journal: Journal):
    """By wish, or by rights: reads work, and what writes says so."""
    journal.execute(COUNTER, "a", start, actor="bob")
    (schema,) = sql(url, "SELECT current_schema()")[0]
    sql(
        url,
        f"CREATE ROLE {schema}_reader LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {schema}_reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {schema}_reader",
    )
    theirs = url.replace("bob@", f"{schema}_reader@")
    for opened in (Journal(url, read_only=True), Journal(theirs)):
        with opened as other:
            assert other.read_only
            assert other.load(COUNTER, "a").version == 1
            change = other.load(COUNTER, "a").decide(add)
            assert kind_of(lambda o=other, c=change: o.commit(c, actor="bob")) == "read-only"
    assert journal.head() == 1


@pytest.mark.usefixtures("impatient")
def test_a_lock_that_another_holds(url: str):
    """Who waits for too long is told that it is busy; readers do not wait."""
    with Journal(url) as journal, psycopg.connect(url) as other:
        change = journal.load(COUNTER, "a").decide(start)
        key = journal.recorder.connections.key("log")
        other.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        assert kind_of(lambda: journal.commit(change, actor="bob")) == "busy"
        assert journal.head() == 0
        other.rollback()
        assert journal.commit(change, actor="bob").position == 1


def test_a_version_taken_by_another_program_is_a_conflict(journal: Journal):
    loaded = journal.execute(COUNTER, "a", start, actor="bob").loaded[0]
    journal.execute(COUNTER, "a", add, actor="alice")
    with pytest.raises(Conflict):
        journal.commit(loaded.decide(add), actor="bob")


def test_sessions_that_ended_between_two_uses(server: Server, journal: Journal):
    """Nobody hears of it: what reads reads again, and a turn begins again."""
    journal.execute(COUNTER, "a", start, actor="bob")
    for _ in range(2):
        end_sessions(server)
        assert journal.load(COUNTER, "a").version >= 1
        end_sessions(server)
        journal.execute(COUNTER, "a", add, actor="bob")
    assert journal.load(COUNTER, "a").state.total == 2


def test_a_session_that_ends_within_a_turn(
    server: Server, journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """Nothing of it was committed, and the next one is as any other."""
    journal.execute(COUNTER, "a", start, actor="bob")
    original = appending.stamped

    def stamped(*given: Any) -> Any:
        end_sessions(server)
        return original(*given)

    monkeypatch.setattr(appending, "stamped", stamped)
    change = journal.load(COUNTER, "a").decide(add)
    assert kind_of(lambda: journal.commit(change, actor="bob", command="c-1")) == "busy"
    monkeypatch.undo()
    assert not journal.commit(change, actor="bob", command="c-1").repeated
    assert journal.head() == 2


def test_a_session_that_ends_before_its_commit(
    server: Server, journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """The look-up finds nothing, so the error is what it was."""
    original = Connections.commit

    def commit(self: Any, db: Any, *, tell: bool) -> None:
        end_sessions(server)
        original(self, db, tell=tell)

    change = journal.load(COUNTER, "a").decide(start)
    with monkeypatch.context() as patch:
        patch.setattr(Connections, "commit", commit)
        # the look-up takes a turn too, which ends as badly: nobody knows
        with pytest.raises(OutcomeUnknown):
            journal.commit(change, actor="bob", command="c-1")
    assert journal.find("c-1") == ()
    assert not journal.commit(change, actor="bob", command="c-1").repeated


def test_a_commit_whose_answer_was_lost(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """It is looked up, and returns as if nothing had happened."""
    original = Connections.commit
    lost = iter([True])

    def commit(self: Any, db: Any, *, tell: bool) -> None:
        original(self, db, tell=tell)
        if next(lost, False):
            self.doubt = True
            db.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(Connections, "commit", commit)
    done = journal.execute(COUNTER, "a", start, actor="bob")
    assert (done.position, done.repeated, len(done.recorded)) == (1, False, 1)
    assert journal.execute(COUNTER, "a", add, actor="bob").version == 2


def test_a_commit_that_the_server_is_still_at(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """The look-up waits for it: without the lock it would see nothing, and say so wrongly."""
    original = Connections.commit
    slow: list[threading.Thread] = []

    def commit(self: Any, db: Any, *, tell: bool) -> None:
        if slow:
            original(self, db, tell=tell)
            return

        def later() -> None:
            time.sleep(0.5)
            db.execute("COMMIT")
            db.close()

        slow.append(threading.Thread(target=later))
        slow[0].start()
        self.doubt, self._writer = True, None
        raise psycopg.OperationalError("the network is down")

    monkeypatch.setattr(Connections, "commit", commit)
    monkeypatch.setattr(Connections, "undo", lambda self, db: None)
    assert journal.execute(COUNTER, "a", start, actor="bob").position == 1
    slow[0].join()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("lands", [False, True])
def test_a_commit_of_which_nobody_knows(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch, lands: bool
):
    """The server is gone, and with it whoever could be asked: until it is back."""
    original = Connections.commit

    def commit(self: Any, db: Any, *, tell: bool) -> None:
        if lands:
            original(self, db, tell=tell)
        server.stop("immediate")
        self.doubt = True
        original(self, db, tell=tell)

    with Journal(url) as journal:
        change = journal.load(COUNTER, "a").decide(start)
        with monkeypatch.context() as patch:
            patch.setattr(Connections, "commit", commit)
            try:
                with pytest.raises(OutcomeUnknown) as caught:
                    journal.commit(change, actor="bob", command="c-1")
                assert kind_of(journal.head) == "busy"
            finally:
                server.start()
        assert caught.value.command == "c-1"
        again = journal.commit(change, actor="bob", command="c-1")
        assert (again.repeated, again.version, journal.head()) == (lands, 1, 1)


def test_a_server_that_is_restarted(server: Server, url: str, monkeypatch: pytest.MonkeyPatch):
    """Within the patience nobody notices."""
    monkeypatch.setattr(PostgresRecorder, "patience", 60.0)
    with Journal(url) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
        server.stop("immediate")
        back = threading.Timer(0.5, server.start)
        back.start()
        assert journal.execute(COUNTER, "a", add, actor="bob").version == 2
        back.join()


def test_a_store_that_was_replaced_while_it_was_open(server: Server, url: str, journal: Journal):
    """Events written into another store would be lost without a word."""
    sql(url, "UPDATE statelog SET id = gen_random_uuid()")
    end_sessions(server)
    assert kind_of(journal.head) == "damaged"
    assert kind_of(lambda: journal.execute(COUNTER, "a", start, actor="bob")) == "damaged"


def test_a_follower_hears_other_processes(server: Server, url: str, journal: Journal):
    """By the commit itself, also after its session was lost; nothing is missed."""
    code = """
with Journal(sys.argv[1]) as journal:
    for line in sys.stdin:
        journal.execute(COUNTER, "a", add if journal.head() else start, actor="bob")
        print(time.monotonic(), flush=True)
"""
    from subprocess import PIPE

    from tests.infrastructure.store.counter import child

    heard: list[float] = []
    with child(code, url, stdin=PIPE) as writer, journal.follow() as follower:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in range(8):
            if number == 5:
                end_sessions(server)
            assert not follower.wait(0.01) or number == 0
            writer.stdin.write("go\n")
            writer.stdin.flush()
            while not (events := follower.batch()):
                pass
            heard.append(time.monotonic() - float(writer.stdout.readline()))
            assert [each.position for each in events] == [number + 1]
        writer.stdin.close()
        assert writer.wait(10) == 0
    assert sorted(heard)[len(heard) // 2] < POLL_S / 2


def test_a_fork_goes_on_by_itself(url: str):
    """Parent and child use the journal they had, and neither spoils the other's sessions."""
    code = """
journal = Journal(sys.argv[1])
journal.execute(COUNTER, "a", start, actor="bob")
follower = journal.follow(after=journal.head())
follower.wait(0.01)
child = os.fork()
for _ in range(30):
    journal.execute(COUNTER, "a" if child else "b", add if child else start, actor="bob")
    assert journal.load(COUNTER, "a").version >= 1
assert follower.wait(5)
if not child:
    journal.execute(COUNTER, "b", add, actor="bob")
    follower.close()
    journal.close()
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
journal.execute(COUNTER, "a", add, actor="bob")
print(journal.load(COUNTER, "a").state.total, journal.load(COUNTER, "b").state.total)
follower.close()
journal.close()
"""
    assert run(code, url) == "31 1"


def test_a_fork_while_a_thread_writes(url: str):
    """The child waits for nothing that is its parent's, and its parent loses nothing."""
    code = """
import threading, warnings
warnings.simplefilter("ignore")
done = False
def write():
    while not done:
        journal.execute(COUNTER, "a", add, actor="bob")
journal = Journal(sys.argv[1])
journal.execute(COUNTER, "a", start, actor="bob")
thread = threading.Thread(target=write)
thread.start()
for _ in range(5):
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        journal.execute(COUNTER, str(os.getpid()), start, actor="bob")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
done = True
thread.join()
journal.close()
"""
    run(code, url)


def test_erased_payloads_leave_the_file_of_the_table(url: str, journal: Journal):
    """Once it is swept, which waits for whoever may still see them."""
    journal.execute(COUNTER, "a", start, actor="bob")
    journal.execute(COUNTER, "a", add, by=271828, actor="bob")
    change = journal.load(COUNTER, "b").decide(start)
    held = "pg_read_binary_file(pg_relation_filepath('events'))"
    looked = f"SELECT position('271828'::bytea IN {held}) > 0"
    with psycopg.connect(url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM events")
        journal.rewrite(change, actor="bob", erase=[2])
        assert journal.mentions("271828", "-", "-") is None
        assert sql(url, "CHECKPOINT", looked) == [(True,)]
        assert not journal.sweep()
    assert journal.sweep()
    assert sql(url, "CHECKPOINT", looked) == [(False,)]
    assert journal.head() == 3


def test_a_doctor_looks_at_the_server(url: str, journal: Journal):
    """Facts of the store, what is wrong with the server, and whether positions are missing."""
    journal.execute(COUNTER, "a", start, actor="bob")
    journal.execute(COUNTER, "a", add, actor="bob")
    found = journal.health(check=True)
    assert (found["position"], found["dense"]) == (2, True)
    assert found["postgres_fault"].startswith("fsync is off")
    assert postgres_fault({"fsync": "on", "full_page_writes": "on"}) is None
    assert found["bytes"] > 0
    sql(url, "DELETE FROM events WHERE position = 1")
    assert not journal.health(check=True)["dense"]


def test_the_view_for_people_is_that_of_the_file(url: str, journal: Journal, store_path: Path):
    """The same text of the same event."""
    import sqlite3
    from contextlib import closing

    journal.execute(COUNTER, "ä", start, actor="bob", meta={"a": 1})
    with Journal(store_path) as file:
        file.take(list(journal.rows()))
    with closing(sqlite3.connect(store_path)) as db:
        assert db.execute("SELECT * FROM history").fetchall() == sql(url, "SELECT * FROM history")
