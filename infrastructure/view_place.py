"""Where the views of a log are kept when nobody says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

SUFFIX: Final = ".views.db"
VIEWS: Final = "STATELOG_VIEWS"
"""The environment variable that names the file of views of a store in PostgreSQL."""


def on_this_host(store_id: str, environ: Mapping[str, str] | None = None) -> Path:
    """For a log in a server: as the environment says, else among the user's caches by its id.

    A folder of ours is made when it is missing; where it cannot be, opening the file says why.
    """
    known = os.environ if environ is None else environ
    if named := known.get(VIEWS):
        return Path(named).absolute()
    caches = Path(known.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches.absolute() / "statelog"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{store_id}{SUFFIX}"
