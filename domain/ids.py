"""Stream names: paths whose parts are percent-encoded, so that one prefix range is one thing."""

from __future__ import annotations

from functools import lru_cache

from statelog.domain.errors import Invalid

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

Id = str | tuple[str, ...]
"""Identity of an aggregate: one part, or several for a stream nested below another."""


@lru_cache(maxsize=65536)
def encode_part(part: str) -> str:
    """One path part, with every UTF-8 byte outside `A-Z a-z 0-9 - . _ ~` as `%XX`.

    Raises `Invalid` for an empty part or one that is not encodable in UTF-8.
    """
    if not part:
        raise Invalid("id", "a part of a stream name is not empty")
    try:
        raw = part.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid("id", f"{part!r} is not text that UTF-8 can encode") from error
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)


def decode_part(part: str) -> str:
    """The text that `encode_part` was given."""
    head, *rest = part.split("%")
    raw = head.encode("ascii") + b"".join(
        bytes([int(piece[:2], 16)]) + piece[2:].encode("ascii") for piece in rest
    )
    return raw.decode("utf-8")


@lru_cache(maxsize=65536)
def stream_name(pattern: str, id: Id) -> str:
    """The stream of `id` under a pattern such as `plan/{}/attempt/{}`.

    Raises `ValueError` when the number of parts differs from the pattern's.
    """
    parts = (id,) if isinstance(id, str) else id
    if pattern.count("{}") != len(parts):
        raise ValueError(f"{pattern} takes {pattern.count('{}')} parts, not {len(parts)}")
    return pattern.format(*map(encode_part, parts))


def stream_parts(stream: str) -> tuple[str, ...]:
    """All parts of a stream name, decoded, fixed words included."""
    return tuple(map(decode_part, stream.split("/")))


def below(prefix: str) -> tuple[str, str, str]:
    """Bounds of a prefix: a stream is below it iff it equals the first or lies in [second, third).

    `0` is the character after `/`, so `p/` <= stream < `p0` is every nested stream of p.
    """
    return prefix, f"{prefix}/", f"{prefix}0"


def is_below(stream: str, prefix: str) -> bool:
    """Whether a stream is the prefix itself or nested under it."""
    exact, low, high = below(prefix)
    return stream == exact or low <= stream < high
