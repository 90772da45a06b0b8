"""Work directories: where steps work, their markers, and their declared outputs (5.2 to 5.7)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final

import orjson

from statelog.domain.execution.faults import OrchestrationError
from statelog.domain.execution.reuse import InputHash
from statelog.domain.execution.spec import StepSpec
from statelog.infrastructure.execution.params import input_paths

WORK_ROOT: Final = "STATELOG_WORK_ROOT"
"""The environment variable that names the work root."""

MARKER: Final = "success.fingerprint"
PLAN_FILE: Final = "plan.json"
_READABLE: Final = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def work_root(store: Path, given: Path | None, environ: Mapping[str, str]) -> Path:
    """The folder of all plans' work: as given, else of the environment, else `<store>.work`."""
    if given is not None:
        return given
    named = environ.get(WORK_ROOT)
    return Path(named) if named else store.with_name(f"{store.name}.work")


@dataclass(frozen=True)
class WorkDir:
    """The work directory of one plan, shared by all its attempts and generations, never cleaned."""

    root: Path
    plan_id: str

    @cached_property
    def path(self) -> Path:
        """The plan's own directory."""
        return self.root / self.plan_id

    @cached_property
    def _folder(self) -> str:
        return str(self.path)

    def step(self, step_id: str) -> StepDir:
        """The directory of a step: one level for each part of its id."""
        return StepDir(self.path / step_id, f"{self._folder}/{step_id}")

    def write_plan(self, body: Mapping[str, Any]) -> None:
        """Write the plan's snapshot, which is for people. Raises `OrchestrationError`."""
        path = f"{self._folder}/{PLAN_FILE}"
        with _Machinery("write the plan file", path):
            text = orjson.dumps(body, option=_READABLE)
            self.path.mkdir(parents=True, exist_ok=True)
            _replace(path, text)


class StepDir:
    """The work directory of one step, with its success marker and its relative outputs.

    Every method raises `OrchestrationError` when the file system fails it.
    """

    def __init__(self, path: Path, folder: str) -> None:
        """`folder` is the text of `path`, which costs more to make than the directory itself."""
        self.path = path
        self._folder = folder
        self._marker = f"{folder}/{MARKER}"

    def create(self) -> None:
        """Create the directory, if it is not there."""
        with _Machinery("create the work directory", self.path):
            try:
                os.mkdir(self._folder)
            except OSError:
                self.path.mkdir(parents=True, exist_ok=True)

    def marker(self) -> str | None:
        """The text of the success marker, trimmed; none when there is no marker.

        Bytes that are no text are escaped: such a marker is just of no known success.
        """
        with _Machinery("read the success marker", self._marker):
            try:
                with open(self._marker, "rb") as file:
                    return file.read().decode("utf-8", "backslashreplace").strip()
            except FileNotFoundError:
                return None

    def delete_marker(self) -> None:
        """Delete the success marker, if there is one."""
        with _Machinery("delete the success marker", self._marker), suppress(FileNotFoundError):
            os.unlink(self._marker)

    def write_marker(self, fingerprint: str) -> None:
        """Write the success marker in one move."""
        with _Machinery("write the success marker", self._marker):
            _replace(self._marker, f"{fingerprint}\n".encode())

    def outputs(self, declared: Mapping[str, str]) -> dict[str, Path]:
        """Declared outputs as paths: absolute ones as they are, others in this directory (5.7)."""
        return {key: self.path / path for key, path in declared.items()}

    def missing_outputs(self, declared: Mapping[str, str]) -> tuple[str, ...]:
        """Paths of the declared outputs that do not exist, in order of declaration (5.4).

        A dangling link and what lies below a missing parent do not exist; an empty directory does.
        """
        if not declared:
            return ()
        paths = self.outputs(declared).values()
        return tuple(str(path) for path in paths if not _exists(path))


def hash_inputs(spec: StepSpec, function: Callable[..., Any]) -> dict[str, InputHash]:
    """The hash of each input of a step by key; relative paths are the process directory's (5.3).

    This is realm-controlled: what fails raises an ordinary exception (`OSError`, `TypeError`,
    `ValueError`).
    """
    return {key: _named(key, path) for key, path in input_paths(spec, function).items()}


def _named(key: str, path: Path | str) -> InputHash:
    try:
        return hash_input(Path(path))
    except ValueError as error:
        raise ValueError(f"input {key!r}: {error}") from error


def hash_input(path: Path) -> InputHash:
    """The content hash of a file, the hash of a directory, or that neither is there.

    Raises `OSError` when it cannot be read.
    """
    status = _status(path)
    if status is not None and stat.S_ISREG(status.st_mode):
        return {"sha256": _file_hash(path)}
    if status is not None and stat.S_ISDIR(status.st_mode):
        return {"dirhash": _directory_hash(path)}
    return {"missing": True}


def digest(path: Path) -> str | None:
    """The digest of an artifact: `sha256:` of a file, `dirhash:` of a directory, none otherwise.

    Raises `OSError` when it cannot be read.
    """
    found = hash_input(path)
    return next((f"{kind}:{value}" for kind, value in found.items() if kind != "missing"), None)


class _Machinery:
    """Whatever the file system says no to here is a failure of our own machinery."""

    __slots__ = ("doing", "path")

    def __init__(self, doing: str, path: Path | str) -> None:
        self.doing = doing
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | ValueError | TypeError):
            raise _fault(self.doing, self.path, error) from error


def _fault(doing: str, path: Path | str, error: Exception) -> OrchestrationError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return OrchestrationError(f"cannot {doing} {str(path)!r}: {why}", {"path": str(path)})


def _replace(path: str, content: bytes) -> None:
    """Write beside the file and rename over it; on failure the temporary file is removed."""
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.tmp"
    try:
        _write(temporary, content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _write(path: str, content: bytes) -> None:
    """Without the buffers of `open`, which cost more than the file itself."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


def _exists(path: Path) -> bool:
    with _Machinery("look for the output", path):
        return _status(path) is not None


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _directory_hash(path: Path) -> str:
    """Relative path, size and mtime in whole seconds of every regular file below, by path."""
    whole = sha256()
    for name, size, seconds in sorted(_files_below(path)):
        whole.update(b"%s\0%d\0%d\n" % (name, size, seconds))
    return whole.hexdigest()


def _files_below(path: Path) -> Iterator[tuple[bytes, int, int]]:
    for folder, _, names in os.walk(path, onerror=_raise):
        for name in names:
            file = Path(folder, name)
            status = _status(file)
            if status is not None and stat.S_ISREG(status.st_mode):
                relative = os.fsencode(file.relative_to(path))
                yield relative, status.st_size, status.st_mtime_ns // 1_000_000_000


def _raise(error: OSError) -> None:
    raise error
