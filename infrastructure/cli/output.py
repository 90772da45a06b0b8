"""What reaches the terminal: results on stdout, everything else on stderr, nothing that steers it.

A reader that went away (`| head`) ends the output quietly; it never ends the work.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO

import click

from statelog.infrastructure.logs import printable, shortened

__all__ = [
    "emit",
    "of_system",
    "printable",
    "show",
    "stdout_is_gone",
    "stdout_to_stderr",
    "tell",
    "write_file",
]

_KEPT: Final = "\n"
_PLACES: Final = {errno.ENOSPC: "stdout", errno.ENOENT: "the current folder"}
"""What an error of the system is about when it names no file."""


def emit(value: Any, *, pretty: bool = False, file: TextIO | None = None) -> None:
    """Print one JSON value on stdout or `file`: on one line, or `pretty` for people."""
    encoding = getattr(file or sys.stdout, "encoding", None) or ""
    ascii_only = encoding.lower() not in ("utf-8", "utf8")
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2 if pretty else None)
    click.echo("".join(c if _shown(c) else _json_escape(c) for c in text), file=file)


def show(text: str, file: TextIO | None = None) -> None:
    """Print text for people on stdout or `file`."""
    click.echo(text, file=file)


def tell(line: str) -> None:
    """Print a line about the work on stderr, or nowhere when stderr cannot take it."""
    try:
        click.echo(printable(shortened(line, 1000)), err=True)
    except OSError:
        _to_nowhere(2)


def of_system(error: OSError) -> str:
    """What the system said, and what about."""
    place = error.filename or _PLACES.get(error.errno or 0)
    said = error.strerror or str(error)
    return f"{place}: {said}" if place else said


def write_file(path: Path, text: str) -> None:
    """Write a file that was asked for. Raises `OSError` naming it, also when the disk is full."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def stdout_is_gone(file: TextIO | None = None) -> None:
    """Let what is left in the buffer of stdout go nowhere: the interpreter would fail on it."""
    _to_nowhere(1)
    if file is not None:
        with suppress(OSError):
            _to_nowhere(file.fileno())


def _shown(character: str) -> bool:
    return character in _KEPT or character.isprintable()


def _json_escape(character: str) -> str:
    return json.dumps(character)[1:-1] if ord(character) > 0x7F else f"\\u{ord(character):04x}"


def _to_nowhere(descriptor: int) -> None:
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


@contextmanager
def stdout_to_stderr() -> Iterator[TextIO]:
    """Send what steps and their commands print to stderr; yields where results go.

    In a process of its own that stays so to its end, as threads and commands may outlive a step.
    """
    stdout, kept = sys.stdout, None
    with suppress(OSError, AttributeError):
        stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    results = _moved(stdout, kept)
    sys.stdout = sys.stderr
    try:
        yield results
    finally:
        if results is stdout:
            sys.stdout = stdout
            if kept is not None:
                os.dup2(kept, 1)
                os.close(kept)


def _moved(stdout: TextIO, kept: int | None) -> TextIO:
    """The same place by another descriptor, which steps and their commands do not know."""
    try:
        if kept is None or stdout.fileno() != 1:
            return stdout
    except OSError:
        return stdout
    return open(kept, "w", 1, encoding=stdout.encoding, errors=stdout.errors, closefd=False)
