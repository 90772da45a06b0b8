"""`eventsourcing`'s own suites for recorders, passed by both stores.

Their ids are made text, since streams are text here; the library says so in
`ORIGINATOR_ID_TYPE=text`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest
from eventsourcing.persistence import InfrastructureFactory, IntegrityError, StoredEvent
from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)
from eventsourcing.utils import Environment

from statelog.infrastructure.store.drivers import driver
from statelog.infrastructure.store.memory import MemoryFactory, MemoryRecorder
from statelog.infrastructure.store.recorder import LogRecorder
from statelog.infrastructure.store.sqlite import SqliteFactory, SqliteRecorder


class TextIds:
    def new_originator_id(self) -> str:
        return str(uuid4())


class InMemory(TextIds):
    def create_recorder(self) -> LogRecorder:
        return MemoryRecorder()


class InAFile(TextIds):
    driver = "sqlite3"

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.opened: list[LogRecorder] = []

    def create_recorder(self) -> LogRecorder:
        recorder = SqliteRecorder(self.folder / "log.db", driver=driver(self.driver))
        self.opened.append(recorder)
        return recorder

    def tearDown(self) -> None:
        for recorder in self.opened:
            recorder.close()
        shutil.rmtree(self.folder)


class TestMemoryRecorder(InMemory, ApplicationRecorderTestCase[LogRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApswRecorder(InAFile, ApplicationRecorderTestCase[LogRecorder]):
    driver = "apsw"

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestSqliteRecorder(InAFile, ApplicationRecorderTestCase[LogRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


@pytest.mark.parametrize("store", ["memory", "file"])
def test_a_version_is_taken_once(store: str, tmp_path: Path):
    """Also within one call, of which nothing is kept then."""
    first, second = (StoredEvent("s", version, "topic", b"{}") for version in (1, 2))
    log = MemoryRecorder() if store == "memory" else SqliteRecorder(tmp_path / "log.db")
    log.insert_events([first])
    for events in ([second, second], [second, first], [first]):
        with pytest.raises(IntegrityError):
            log.insert_events(events)
    assert log.select_events("s") == [first]
    assert log.insert_events([second]) == [2]
    log.close()


class TestMemoryOrder(InMemory, NonInterleavingNotificationIDsBaseCase):
    pass


class TestSqliteOrder(InAFile, NonInterleavingNotificationIDsBaseCase):
    pass


def test_the_persistence_modules_have_one_factory_each(tmp_path: Path):
    """`PERSISTENCE_MODULE` finds it, as any `eventsourcing` application would."""
    module = "statelog.infrastructure.store."
    memory = {"PERSISTENCE_MODULE": f"{module}memory"}
    file = {"PERSISTENCE_MODULE": f"{module}sqlite", "STATELOG_STORE": str(tmp_path / "log.db")}
    for settings, kind in ((memory, MemoryFactory), (file, SqliteFactory)):
        factory = InfrastructureFactory.construct(Environment("any", settings))
        assert type(factory) is kind
        assert factory.application_recorder().max_notification_id() is None
        factory.close()
