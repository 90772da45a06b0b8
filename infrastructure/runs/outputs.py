"""Declared outputs of an activity, each observed with a checksum once its command ended (4.3)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from statelog.domain.errors import Invalid
from statelog.infrastructure.runs.workspaces import Abandoned

EXPECTED = "expectedOutputs"
_CHUNK = 1024 * 1024

Leave = Callable[[], bool]
"""Whether whoever looks was asked to leave; asked again and again, as outputs may be huge."""


@dataclass(frozen=True)
class Observed:
    """Outputs that are there, as `{path, kind, bytes, sha256}`, and names of those that are not."""

    outputs: tuple[Mapping[str, Any], ...]
    missing: tuple[str, ...]


def expected(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths that an activity promises, relative to its workspace.

    Each is given as text or as an object with a `path`. Raises `Invalid`.
    """
    given = metadata.get(EXPECTED) or ()
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise Invalid(f"metadata.{EXPECTED}", "is a list of paths")
    paths = []
    for at, each in enumerate(given):
        path = each.get("path") if isinstance(each, Mapping) else each
        if not isinstance(path, str) or not _is_inside(path):
            why = "is a path below the workspace, without `..`"
            raise Invalid(f"metadata.{EXPECTED}[{at}]", why)
        paths.append(path)
    return tuple(paths)


def observe(workspace: Path, paths: Sequence[str], leave: Leave = lambda: False) -> Observed:
    """Look for each path, and add up what is there. What lies outside counts as missing.

    A directory's checksum is that of the relative path and checksum of each file below, by path.
    Raises `OSError` when what is there cannot be read, `Abandoned` when `leave` says so.
    """
    outputs: list[Mapping[str, Any]] = []
    missing = []
    for path in paths:
        found = _found(workspace, path)
        if found is None:
            missing.append(path)
        else:
            outputs.append({"path": path, **_sum(found, leave)})
    return Observed(tuple(outputs), tuple(missing))


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return bool(path) and "\0" not in path and not path.startswith("/") and ".." not in parts


def _found(workspace: Path, path: str) -> Path | None:
    """The real place of an output: links may lead to it, but not out of the workspace."""
    try:
        place = (workspace / path).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    if not place.is_relative_to(workspace.resolve()):
        return None
    return place if place.is_file() or place.is_dir() else None


def _sum(place: Path, leave: Leave) -> dict[str, Any]:
    if place.is_file():
        return {"kind": "file", "bytes": place.stat().st_size, "sha256": checksum(place, leave)}
    whole, size = sha256(), 0
    for name, file in sorted(_files(place)):
        whole.update(os.fsencode(name) + b"\0" + checksum(file, leave).encode() + b"\n")
        size += file.stat().st_size
    return {"kind": "directory", "bytes": size, "sha256": whole.hexdigest()}


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for here, _, names in os.walk(folder):
        for name in names:
            file = Path(here, name)
            if stat.S_ISREG(file.lstat().st_mode):
                yield str(file.relative_to(folder)), file


def checksum(path: Path, leave: Leave = lambda: False) -> str:
    """SHA-256 of a file's content, in hex. Raises `OSError`, `Abandoned` when `leave` says so."""
    found = sha256()
    with path.open("rb", buffering=0) as file:
        while data := file.read(_CHUNK):
            if leave():
                raise Abandoned("asked to leave while an output was added up")
            found.update(data)
    return found.hexdigest()
