"""Bodies: read in bounded time and memory, refused as soon as they are too large, then parsed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Any, Final

from statelog.domain.errors import Malformed
from statelog.infrastructure.documents import JSON_LIMIT, YAML_LIMIT, parse_text
from statelog.infrastructure.http.failures import Failure

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

JSON_TYPE: Final = "application/json"
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml")
LARGE: Final = 1024 * 1024
"""Bytes above which a body waits in a file, and for its turn: one is worked on at a time."""

VALUES: Final = 3_000_000
"""Values a body may have; each takes up to 100 bytes of memory, however short it is written."""

_OTHERS: Final = bytes(set(range(256)) - set(b'",[{'))


class Disconnected(Exception):
    """The client went away before its request was complete."""


@dataclass(frozen=True)
class Media:
    """What a body is written in, and how long it may be."""

    yaml: bool

    @property
    def limit(self) -> int:
        """Bytes."""
        return YAML_LIMIT if self.yaml else JSON_LIMIT

    @property
    def name(self) -> str:
        """What people call it."""
        return "YAML" if self.yaml else "JSON"

    @property
    def too_large(self) -> Failure:
        """The refusal of a longer one."""
        why = f"body: is larger than {self.limit} bytes, the limit for {self.name}"
        return Failure(413, why, close=True)


def media_of(headers: Mapping[str, str]) -> Media:
    """What the content type says. Raises `Failure` 415."""
    given = headers.get("content-type", "")
    name, _, parameters = given.partition(";")
    known = (JSON_TYPE, *YAML_TYPES)
    charset = parameters.strip().lower().partition("charset=")[2].strip('"')
    if name.strip().lower() not in known or charset not in ("", "utf-8", "utf8"):
        why = f"Content-Type: must be one of {', '.join(known)}, in UTF-8"
        raise Failure(415, why, close=True)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Failure(415, "Content-Encoding: must be left out", close=True)
    return Media(name.strip().lower() != JSON_TYPE)


class Body:
    """The bytes of a body, in a file once they are many. Close it."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(LARGE)  # noqa: SIM115
        self.size = 0

    @property
    def large(self) -> bool:
        """Whether it has to wait for its turn."""
        return self.size > LARGE

    def add(self, chunk: bytes) -> None:
        """One more piece."""
        self._file.write(chunk)
        self.size += len(chunk)

    def bytes(self) -> bytes:
        """All of it."""
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        """Forget it."""
        self._file.close()


async def read_body(
    receive: Receive, headers: Mapping[str, str], media: Media, seconds: float
) -> Body:
    """The body of a request; each piece may take `seconds`, all of it ten times that.

    Raises `Failure`: 413 as soon as it is too large or says that it will be, 408 when it takes too
    long. Raises `Disconnected`.
    """
    declared = headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:20]) > media.limit:
        raise media.too_large
    body = Body()
    try:
        async with asyncio.timeout(10 * seconds):
            async for chunk in pieces(receive, seconds):
                body.add(chunk)
                if body.size > media.limit:
                    raise media.too_large
    except TimeoutError:
        body.close()
        raise Failure(408, "body: took too long to arrive", close=True) from None
    except BaseException:
        body.close()
        raise
    return body


async def pieces(receive: Receive, seconds: float) -> Any:
    """The pieces of a body as they come. Raises `TimeoutError` and `Disconnected`."""
    more = True
    while more:
        message = await asyncio.wait_for(receive(), seconds)
        if message["type"] == "http.disconnect":
            raise Disconnected
        yield message.get("body", b"")
        more = message.get("more_body", False)


def parse(data: bytes, media: Media) -> Any:
    """The value of a body. Raises `Malformed` as `parse_text`, and `Failure` 413."""
    if not data.strip():
        raise Malformed("body", "is empty")
    if not media.yaml and has_many_values(data):
        raise Failure(413, f"body: has more than {VALUES:,} values")
    return parse_text(data, "", yaml=media.yaml)


def has_many_values(data: bytes) -> bool:
    """Whether JSON text has more than `VALUES` of them, by what separates and opens them.

    Nothing is made of the text, so that it costs a tenth of a second however the text is made.
    """
    if _marks(data) <= VALUES:
        return False
    plain = data.replace(rb"\\", b"").replace(rb"\"", b"")
    # What is left are quotes and marks; two quotes side by side have no mark between them, be it
    # inside a string or outside.
    bare = plain.translate(None, _OTHERS).replace(b'""', b"")
    if bare.count(b'"') > 2 * VALUES:
        return True
    return sum(map(_marks, bare.split(b'"')[::2])) > VALUES


def _marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
