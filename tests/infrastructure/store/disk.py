"""A disk that remembers: what was written to each file and when it was synced, through a VFS.

From its record any file system that a power cut may leave can be made: what was synced is there,
and of what came after it each write is there, is not, or is there in part.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
_names = count()


@dataclass(frozen=True)
class Step:
    """One thing that happened to a file: `write` of bytes at a place, `truncate` to it, `sync`,
    or `note`, which is what the program had been told by then."""

    what: str
    file: str = ""
    at: int = 0
    data: bytes = b""


@dataclass
class Disk:
    """All steps since it was made, and what the files were then."""

    base: dict[str, bytes] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Remember that the program was told something now."""
        self.steps.append(Step("note", text))

    def told(self, upto: int) -> set[str]:
        """What it had been told before a step."""
        return {step.file for step in self.steps[:upto] if step.what == "note"}

    def after_power_cut(self, upto: int, chance: random.Random) -> dict[str, bytes]:
        """Files as they may be when the power went before step `upto`."""
        return {
            name: content for name in self._files() if (content := self._file(name, upto, chance))
        }

    def _files(self) -> set[str]:
        return {*self.base, *(step.file for step in self.steps if step.what != "note")}

    def _file(self, name: str, upto: int, chance: random.Random) -> bytes:
        mine = [step for step in self.steps[:upto] if step.file == name and step.what != "note"]
        synced = max((at + 1 for at, step in enumerate(mine) if step.what == "sync"), default=0)
        content = bytearray(self.base.get(name, b""))
        for step in mine[:synced]:
            _apply(content, step)
        mood = chance.choice(("none", "all", "some", "torn"))
        for step in mine[synced:]:
            if mood == "all" or (mood != "none" and chance.random() < 0.5):
                _apply(content, step if mood != "torn" else _torn(step, chance))
        return bytes(content)


def _apply(content: bytearray, step: Step) -> None:
    if step.what == "write":
        if len(content) < step.at:
            content.extend(bytes(step.at - len(content)))
        content[step.at : step.at + len(step.data)] = step.data
    elif step.what == "truncate":
        del content[step.at :]


def _torn(step: Step, chance: random.Random) -> Step:
    """Only some sectors of a write, from its beginning or to its end."""
    sectors = range(0, len(step.data), SECTOR)
    if step.what != "write" or len(sectors) < 2:
        return step
    cut = chance.choice(sectors[1:])
    if chance.random() < 0.5:
        return Step("write", step.file, step.at, step.data[:cut])
    return Step("write", step.file, step.at + cut, step.data[cut:])


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, inherit: str, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._name = os.path.basename(name.filename() if hasattr(name, "filename") else str(name))
        super().__init__(inherit, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.steps.append(Step("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._disk.steps.append(Step("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._disk.steps.append(Step("sync", self._name))


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        super().__init__(name, "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _File(self._disk, "unix", name, flags)


@contextmanager
def recorded(folder: Path) -> Iterator[Disk]:
    """Whatever `apsw` writes meanwhile, beginning with the files of a folder as they are."""
    disk = Disk({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})
    vfs = _Vfs(disk, f"recording-{next(_names)}")
    try:
        yield disk
    finally:
        vfs.unregister()


def laid_out(files: dict[str, bytes], folder: Path) -> Path:
    """A folder with these files; never with a `-shm`, which a power cut does not leave."""
    folder.mkdir()
    for name, content in files.items():
        if not name.endswith("-shm"):
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o600)
    return folder
