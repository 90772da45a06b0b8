"""Where the files of a run lie: a workspace for each activity, and beside it what we keep of it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

MARKER: Final = "run.id"
"""The file in a run's folder that says whose it is."""

_LONGEST: Final = 120


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run: `workspaces/<activity>` and `control/<activity>` below it."""

    root: Path
    run_id: str

    @property
    def path(self) -> Path:
        """The run's own folder."""
        return self.root / folder_name(self.run_id)

    def workspace(self, activity_id: str) -> Path:
        """Where the command of an activity works."""
        return self.path / "workspaces" / folder_name(activity_id)

    def control(self, activity_id: str) -> Path:
        """What is known of the activity's processes, and its output."""
        return self.path / "control" / folder_name(activity_id)

    def made(self, folder: Path) -> Path:
        """A folder of this run, made for nobody but us if it is not there. Raises `OSError`."""
        self.root.mkdir(parents=True, exist_ok=True)
        for each in dict.fromkeys((self.path, folder.parent, folder)):
            each.mkdir(mode=0o700, exist_ok=True)
        return folder

    def claim(self, identity: str) -> bool:
        """Say that the folder is this run's; whether it is. Raises `OSError`.

        Two stores may have runs of one id, and a store may be begun anew beside an old folder:
        what lies there would pass for what this run did.
        """
        own, marker = self.made(self.path / "control"), self.path / MARKER
        if not marker.exists():
            temporary = own / f".{MARKER}.tmp"
            temporary.write_text(identity, encoding="ascii")
            with suppress(FileExistsError):
                os.link(temporary, marker)
            temporary.unlink()
        return marker.read_text(encoding="ascii") == identity


def folder_name(id: str) -> str:
    """An id as the name of a folder: never hidden, never a path, never too long."""
    name = quote(id, safe="")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 33]}~{sha256(id.encode()).hexdigest()[:32]}"
