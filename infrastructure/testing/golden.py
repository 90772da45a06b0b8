"""Golden logs: recorded once by a release, read by every later one, to the byte."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from statelog.domain.aggregate import Aggregate
from statelog.domain.ids import Id, stream_parts
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import hash_of
from statelog.infrastructure.views import Views
from statelog.projections.projection import Projection

Documents = dict[str, dict[str, Any]]
"""By view, then by key."""


@dataclass(frozen=True)
class Golden:
    """A recorded log, opened from a copy, and the documents of its views when it was recorded."""

    name: str
    journal: Journal
    documents: Documents


def record_golden(
    store: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    name: str,
    *,
    views: Sequence[Projection[Any]] = (),
) -> Path:
    """Copy the log of a store into a folder of golden logs, with the documents of these views.

    Answers NAME.db; NAME.json beside it holds the documents. Raises `FileExistsError`: a golden
    log is recorded once.
    """
    target = Path(folder) / f"{name}.db"
    if target.exists():
        raise FileExistsError(f"{target} is golden: it is never recorded again")
    with Journal(Path(store), read_only=True) as journal:
        documents = _documents(journal, views)
    source, copy = sqlite3.connect(store), sqlite3.connect(target)
    source.backup(copy)
    copy.execute("PRAGMA journal_mode=DELETE")
    copy.close()
    source.close()
    text = json.dumps(documents, indent=1, sort_keys=True, ensure_ascii=False)
    target.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
    return target


def golden_logs(folder: str | os.PathLike[str]) -> Callable[..., Any]:
    """A pytest fixture, to be given a name, that is each golden log of a folder in turn."""
    import pytest

    paths = _paths(folder)

    @pytest.fixture(params=paths, ids=[path.stem for path in paths])
    def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
        with opened(request.param) as found:
            yield found

    return golden


def golden_test(
    folder: str | os.PathLike[str],
    *,
    aggregates: Iterable[Aggregate[Any]],
    views: Sequence[Projection[Any]] = (),
) -> Callable[..., None]:
    """A pytest test, to be given a name that begins with `test_`, with four cases for each log.

    Every event is decoded, every hash is what it was, every stream folds through the lifecycle of
    its aggregate, and every view that was recorded still gives what it gave: a release may add
    fields to documents, and lose or change none. Fails when the folder has no logs.
    """
    import pytest

    paths, known = _paths(folder), tuple(aggregates)
    cases = [(path, claim) for path in paths for claim in CLAIMS]

    @pytest.mark.parametrize(
        ("path", "claim"), cases, ids=[f"{path.stem} {claim}" for path, claim in cases]
    )
    def test(path: Path, claim: str) -> None:
        __tracebackhide__ = True
        with opened(path) as golden:
            CLAIMS[claim](golden, known, views)

    test.__doc__ = "What earlier releases wrote is read by this one."
    assert cases, f"{folder} has no golden log"
    return test


class opened:
    """A golden log, opened from a copy of its own for as long as it is used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Golden:
        """Copy it, so that nothing ever writes to what is golden."""
        self._folder = TemporaryDirectory(prefix="golden-")
        copy = Path(self._folder.name) / "golden.db"
        shutil.copyfile(self.path, copy)
        copy.chmod(0o600)
        self._journal = Journal(copy)
        text = self.path.with_suffix(".json")
        documents = json.loads(text.read_text(encoding="utf-8")) if text.exists() else {}
        return Golden(self.path.stem, self._journal, documents)

    def __exit__(self, *error: object) -> None:
        """Close it, and remove the copy."""
        self._journal.close()
        self._folder.cleanup()


def _paths(folder: str | os.PathLike[str]) -> list[Path]:
    return sorted(Path(folder).glob("*.db"))


def _documents(journal: Journal, views: Sequence[Projection[Any]]) -> Documents:
    with Views(journal, views) as found:
        return {view.name: dict(found.rows(view.name)) for view in views}


def _decoded(golden: Golden, known: Sequence[Aggregate[Any]], views: Sequence[Any]) -> None:
    log = list(golden.journal.read())
    assert log, f"{golden.name} is empty"
    assert [recorded.position for recorded in log] == list(range(1, len(log) + 1))
    for recorded in log:
        assert type(recorded.event).stored_name == recorded.name


def _hashed(golden: Golden, known: Sequence[Aggregate[Any]], views: Sequence[Any]) -> None:
    for row in golden.journal.rows():
        assert row.data is None or row.data_hash == sha256(row.data).digest(), row
        assert row.hash == hash_of(row), row


def _folded(golden: Golden, known: Sequence[Aggregate[Any]], views: Sequence[Any]) -> None:
    last = {recorded.stream: recorded.version for recorded in golden.journal.read()}
    for stream, version in last.items():
        aggregate, id = _owner(stream, known)
        assert golden.journal.load(aggregate, id).version == version, stream


def _owner(stream: str, known: Sequence[Aggregate[Any]]) -> tuple[Aggregate[Any], Id]:
    """The aggregate of a stream, and the id within it."""
    parts = stream_parts(stream)
    for aggregate in known:
        pattern = (aggregate.stream or f"{aggregate.name}/{{}}").split("/")
        pairs = list(zip(pattern, parts, strict=False))
        if len(pattern) == len(parts) and all(word in ("{}", part) for word, part in pairs):
            id = tuple(part for word, part in pairs if word == "{}")
            return aggregate, id[0] if len(id) == 1 else id
    raise AssertionError(f"no aggregate has the stream {stream}: give it in aggregates=")


def _shown(golden: Golden, known: Sequence[Aggregate[Any]], views: Sequence[Any]) -> None:
    recorded = [view for view in views if view.name in golden.documents]
    gone = golden.documents.keys() - {view.name for view in recorded}
    assert not gone, f"{golden.name} has documents of {sorted(gone)}: give them in views="
    found = _documents(golden.journal, recorded)
    for name, documents in golden.documents.items():
        for key, document in documents.items():
            now = still(document, found[name].get(key))
            assert now == document, f"{name} {key}: {now}\n  recorded {document}"
    with Views(golden.journal, views) as stored:
        assert stored.verify() == []


def still(recorded: Any, found: Any) -> Any:
    """What is there now of what was recorded: more may be there by now."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        return {key: still(value, found.get(key)) for key, value in recorded.items()}
    return found


Claim = Callable[[Golden, Sequence[Aggregate[Any]], Sequence[Projection[Any]]], None]

CLAIMS: Mapping[str, Claim] = {
    "is decoded": _decoded,
    "has its hashes": _hashed,
    "folds": _folded,
    "shows what it did": _shown,
}
"""What must hold for every golden log."""
