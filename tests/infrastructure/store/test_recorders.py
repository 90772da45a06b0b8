"""`eventsourcing`'s own suites for recorders, passed by both stores.

Their ids are made text, since streams are text here; the library says so in
`ORIGINATOR_ID_TYPE=text`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

from eventsourcing.persistence import InfrastructureFactory
from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)
from eventsourcing.utils import Environment

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
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.opened: list[LogRecorder] = []

    def create_recorder(self) -> LogRecorder:
        recorder = SqliteRecorder(self.folder / "log.db")
        self.opened.append(recorder)
        return recorder

    def tearDown(self) -> None:
        for recorder in self.opened:
            recorder.close()
        shutil.rmtree(self.folder)


class TestMemoryRecorder(InMemory, ApplicationRecorderTestCase[LogRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestSqliteRecorder(InAFile, ApplicationRecorderTestCase[LogRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


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
