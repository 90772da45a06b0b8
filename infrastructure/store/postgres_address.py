"""Where a store in PostgreSQL is: its URL, and how it is shown to people."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeGuard

_PREFIXES: Final = ("postgresql://", "postgres://")
_SECRET: Final = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*@|(?<=[?&])(password|sslpassword)=[^&]*")


def is_url(store: str | Path | None) -> TypeGuard[str]:
    """Whether a store is named by a URL of PostgreSQL, and not by a file's path."""
    return isinstance(store, str) and store.startswith(_PREFIXES)


def shown(url: str) -> str:
    """The URL without its password."""
    return _SECRET.sub(lambda found: f"{found[2]}=***" if found[2] else f"{found[1]}@", url)


def require() -> None:
    """Raises `Invalid` when the library for PostgreSQL is not installed."""
    from statelog.domain.errors import Invalid

    if find_spec("psycopg") is None:
        raise Invalid(
            "store", "in PostgreSQL needs an extra; install it: pip install 'statelog[postgres]'"
        )
