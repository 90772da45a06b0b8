"""Stream prefixes as people give them."""

from __future__ import annotations

import re
from typing import Final

_ENCODED: Final = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+")


def stream_prefix(text: str) -> str:
    """The stream prefix that was meant: a bare plan id is one, and ids need not be encoded.

    Raises `Invalid`.
    """
    from statelog.domain.errors import Invalid
    from statelog.domain.ids import encode_part

    try:
        if "/" not in text:
            return f"plan/{encode_part(text)}"
        parts = text.removesuffix("/").split("/")
        return "/".join(p if _ENCODED.fullmatch(p) else encode_part(p) for p in parts)
    except Invalid as error:
        raise Invalid("prefix", f"{text!r} names no stream: {error.why}") from None
