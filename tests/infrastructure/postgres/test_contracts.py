"""The suites that every store passes, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.persistence import InfrastructureFactory, IntegrityError, StoredEvent
from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)
from eventsourcing.utils import Environment

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import recorder
from statelog.infrastructure.store.postgres import PostgresFactory, PostgresRecorder
from statelog.infrastructure.testing.clock import FakeClock
from statelog.infrastructure.testing.contracts import JournalContract
from statelog.infrastructure.testing.views_contract import ViewsContract
from tests.infrastructure.postgres.server import Server

pytestmark = pytest.mark.servers


class InPostgres:
    """Says how to make a journal."""

    @pytest.fixture(autouse=True)
    def _server(self, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        monkeypatch.setenv("STATELOG_VIEWS", str(tmp_path / "views.db"))

    def make_journal(self, tmp_path: Path, clock: Callable[[], int]) -> Journal:
        return Journal(self.server.place(), clock=clock)


class TestJournal(InPostgres, JournalContract):
    """The journal's contract."""


class TestJournalByIndex(InPostgres, JournalContract):
    """Every prefix is looked up in the index, however close to the head it is."""

    @pytest.fixture(autouse=True)
    def _by_index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorder, "NEAR", -1)


class TestViews(InPostgres, ViewsContract):
    """The contract of views, whose file is on this host."""

    @pytest.fixture
    def journal(self, server: Server) -> Iterator[Journal]:
        with Journal(server.place(), clock=FakeClock()) as journal:
            yield journal


class Recorders:
    @pytest.fixture(autouse=True)
    def _server(self, server: Server) -> Any:
        self.url = server.place()
        self.opened: list[PostgresRecorder] = []
        yield
        for each in self.opened:
            each.close()

    def new_originator_id(self) -> str:
        return str(uuid4())

    def create_recorder(self) -> PostgresRecorder:
        self.opened.append(PostgresRecorder(self.url))
        return self.opened[-1]


class TestRecorder(Recorders, ApplicationRecorderTestCase[PostgresRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestOrder(Recorders, NonInterleavingNotificationIDsBaseCase):
    pass


def test_a_version_is_taken_once(url: str):
    """Also within one call, of which nothing is kept then."""
    first, second = (StoredEvent("s", version, "topic", b"{}") for version in (1, 2))
    log = PostgresRecorder(url)
    log.insert_events([first])
    for events in ([second, second], [second, first], [first]):
        with pytest.raises(IntegrityError):
            log.insert_events(events)
    assert log.select_events("s") == [first]
    assert log.insert_events([second]) == [2]
    log.close()


def test_the_persistence_module_has_one_factory(url: str):
    """`PERSISTENCE_MODULE` finds it, as any `eventsourcing` application would."""
    settings = {
        "PERSISTENCE_MODULE": "statelog.infrastructure.store.postgres",
        "STATELOG_STORE": url,
    }
    factory = InfrastructureFactory.construct(Environment("any", settings))
    assert type(factory) is PostgresFactory
    assert factory.application_recorder().max_notification_id() is None
    factory.close()
