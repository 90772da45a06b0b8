"""What reaches the terminal: results on stdout, everything else on stderr, nothing that steers it.

A reader that went away (`| head`) ends the output quietly; it never ends the work.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, Final

import click

_KEPT: Final = "\n"


def emit(value: Any, *, pretty: bool = False) -> None:
    """Print one JSON value on stdout: on one line, or `pretty` for people."""
    ascii_only = (getattr(sys.stdout, "encoding", None) or "").lower() not in ("utf-8", "utf8")
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2 if pretty else None)
    click.echo("".join(c if _shown(c) else _json_escape(c) for c in text))


def show(text: str) -> None:
    """Print text for people on stdout."""
    click.echo(text)


def tell(line: str) -> None:
    """Print a line about the work on stderr, or nowhere when stderr cannot take it."""
    try:
        click.echo(printable(line), err=True)
    except OSError:
        _to_nowhere(2)


def printable(text: str) -> str:
    """The text on one line, with control characters written out, so that none steers a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _text_escape(c) for c in text)


def stdout_is_gone() -> None:
    """Let what is left in the buffer of stdout go nowhere: the interpreter would fail on it."""
    _to_nowhere(1)


def _shown(character: str) -> bool:
    return character in _KEPT or character.isprintable()


def _json_escape(character: str) -> str:
    return json.dumps(character)[1:-1] if ord(character) > 0x7F else f"\\u{ord(character):04x}"


def _text_escape(character: str) -> str:
    return " " if character in "\n\t" else character.encode("unicode_escape").decode()


def _to_nowhere(descriptor: int) -> None:
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Whatever steps and their commands print goes to stderr: stdout is for results."""
    try:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    except (OSError, AttributeError):
        kept = None
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


class _Printable(logging.Formatter):
    """Log lines hold what steps said; a traceback keeps its lines."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(printable, super().format(record).split("\n")))


def log_to_stderr() -> None:
    """Show log lines from WARNING on stderr, unless logging was set up already."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable("%(levelname)s %(name)s: %(message)s"))
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
