"""Files of plan documents (1.2): a JSON object, a list of them, or JSON lines."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.imported import plan_named_by
from statelog.infrastructure.documents import JSON_LIMIT, parse_text

LINES: Final = (".jsonl", ".ndjson")
SUFFIXES: Final = (".json", *LINES)


@dataclass(frozen=True)
class Found:
    """A document where it was found, with the plan it is of; or why there is none."""

    place: str
    plan_id: str = ""
    document: Mapping[str, Any] | None = None
    why: str = ""


def documents(path: Path, place: str) -> Iterator[Found]:
    """The documents of one file, one after the other. Raises `OSError`."""
    with _plain(path) as file:
        if file is None:
            yield Found(place, why="is not a plain file")
        elif path.suffix.lower() in LINES:
            yield from _lines(file, place)
        else:
            yield from _whole(file, place)


def _whole(file: IO[bytes], place: str) -> Iterator[Found]:
    data = file.read(JSON_LIMIT + 1)
    if len(data) > JSON_LIMIT:
        yield Found(place, why=f"is larger than {JSON_LIMIT} bytes; JSON lines may be")
        return
    try:
        value = parse_text(data, "", yaml=False)
    except Invalid as error:
        yield Found(place, why=_said(error))
        return
    if not isinstance(value, list):
        yield _found(value, place)
        return
    for at, each in enumerate(value):
        yield _found(each, f"{place}[{at}]")


def _lines(file: IO[bytes], place: str) -> Iterator[Found]:
    number = 0
    while line := file.readline(JSON_LIMIT + 1):
        number += 1
        here = f"{place}:{number}"
        if len(line) > JSON_LIMIT and not line.endswith(b"\n"):
            yield Found(here, why=f"is longer than {JSON_LIMIT} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(JSON_LIMIT)
        elif line.strip():
            try:
                yield _found(parse_text(line, "", yaml=False), here)
            except Invalid as error:
                yield Found(here, why=_said(error))


def _found(value: Any, place: str) -> Found:
    try:
        return Found(place, plan_named_by(value), value)
    except Invalid as error:
        return Found(place, why=_said(error))


def _said(error: Invalid) -> str:
    return f"{error.field}: {error.why}" if error.field else error.why


@contextmanager
def _plain(path: Path) -> Iterator[IO[bytes] | None]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        yield file if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
