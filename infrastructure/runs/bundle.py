"""A folder that holds all of a run: registered file by file, then asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Invalid
from statelog.domain.queue.job import Job
from statelog.domain.runs.request import RunRequest
from statelog.domain.workflows.definitions import Record
from statelog.domain.workflows.environments import embedded_environments, read_environment
from statelog.domain.workflows.portable import read_portable
from statelog.domain.workflows.resources import Scope, Topology
from statelog.domain.workflows.shape import read
from statelog.infrastructure.documents import JSON_LIMIT, read_document
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.workflows.definitions import Definitions

REQUEST: Final = "execution-request"
_SUFFIXES: Final = (".yaml", ".yml", ".json")

T = TypeVar("T")
Told = Callable[[str], None]


def read_request(path: Path) -> RunRequest:
    """The request for a run in a JSON or YAML file. Raises `Invalid` naming file and field."""
    return _named(path, lambda document: read(RunRequest, document))


def post_bundle(
    journal: Journal, folder: Path, *, actor: str, told: Told
) -> tuple[str, Loaded[Job]]:
    """Register what the files of a folder say, in the order in which they refer to each other.

    Then its run is asked for; answers the run's id and its job. The files are `environment`,
    `scope`, `topology`, `workflow`, `plan-request` and `execution-request`, each `.yaml`, `.yml` or
    `.json`; only the last one must be there. Raises `Invalid` naming the file and the field.
    """
    asked = _file(folder, REQUEST)
    if asked is None:
        raise Invalid(str(folder), f"has no {REQUEST}.yaml")
    definitions = Definitions(journal)
    for name, records_of in _RECORDS.items():
        path = _file(folder, name)
        if path is not None:
            records = _named(path, records_of)
            _registered(path, journal, definitions, records, actor)
            told(f"{path.name}: {', '.join(each.id for each in records)}")
    request = read_request(asked)
    job = Runs(journal).submit(request, actor=actor)
    told(f"{asked.name}: {request.run.id}")
    return request.run.id, job


def _registered(
    path: Path, journal: Journal, definitions: Definitions, records: list[Record], actor: str
) -> None:
    """A bundle may be posted again, and to a store that has parts of it."""
    try:
        changes = definitions.registrations(*records)
    except Invalid as error:
        raise Invalid(f"{path}: {error.field}", error.why) from None
    if any(change.events for change in changes):
        journal.commit(*changes, actor=actor)


def _plan_records(document: Any) -> list[Record]:
    """What `POST /schedule-plans/` takes: a plan with what it refers to."""
    run = {"id": "-", "mode": "simulation"}
    asked = read(RunRequest, {"run": run, **document} if type(document) is dict else document)
    given = (asked.execution_scope, asked.network_topology, asked.workflow, asked.plan)
    return [*embedded_environments(asked.resources), *(each for each in given if each is not None)]


_RECORDS: Final[Mapping[str, Callable[[Any], list[Record]]]] = {
    "environment": lambda document: [read_environment(document)],
    "scope": lambda document: [read(Scope, document)],
    "topology": lambda document: [read(Topology, document)],
    "workflow": lambda document: [read_portable(document).workflow],
    "plan-request": _plan_records,
}


def _file(folder: Path, name: str) -> Path | None:
    found = (folder / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in found if path.is_file()), None)


def _named(path: Path, reader: Callable[[Any], T]) -> T:
    document = read_document(path, "", JSON_LIMIT)
    try:
        return reader(document)
    except Invalid as error:
        raise Invalid(f"{path}: {error.field or 'document'}", error.why) from None
