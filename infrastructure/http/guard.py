"""Who may ask: whoever knows the token; without one, programs of this machine alone (5)."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.infrastructure.http.failures import Failure

_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
_LONGEST: Final = 4096


def read_token(path: Path) -> str:
    """The token in a file, without white space around it. Raises `Invalid`."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is not ASCII text"
        raise Invalid("--token-file", f"{path}: {why}") from None
    if not text or len(text) > _LONGEST or not text.isprintable() or " " in text:
        raise Invalid("--token-file", f"{path}: must hold one word, the token")
    return text


def check_listening(host: str, port: int, token: str | None) -> None:
    """Raises `Invalid` for a host beyond this machine when there is no token."""
    if token is not None:
        return
    with suppress(OSError):
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)
        if host and all(is_loopback(str(address[0])) for *_, address in found):
            return
    why = f"{host or 'every address'} is beyond this machine: give a --token-file, or 127.0.0.1"
    raise Invalid("--host", why)


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def check(scope: Mapping[str, Any], headers: Mapping[str, str], token: str | None) -> None:
    """Let a request pass. Raises `Failure`: 401 without the token, 403 from elsewhere.

    Without a token a page in a browser of this machine must not get through either: neither under
    a name of its own for this address, nor from another origin.
    """
    if token is not None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        told = given.strip().encode("utf-8", "replace")
        if scheme.lower() != "bearer" or not hmac.compare_digest(told, token.encode()):
            raise Failure(401, "a bearer token is needed", _CHALLENGE, close=True)
        return
    client = scope.get("client")
    if client and not is_loopback(client[0]):
        raise Failure(403, "only programs of this machine may ask", close=True)
    host = headers.get("host", "")
    if not _is_local(host) or headers.get("origin", f"http://{host}") != f"http://{host}":
        raise Failure(403, "only programs of this machine may ask, by its own name", close=True)


def _is_local(host: str) -> bool:
    """Whether a `Host` header names this machine."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.lower() == "localhost" or is_loopback(name)
