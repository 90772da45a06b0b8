"""A streaming FASTQ reader: plain or gzip, and exact about what is wrong and where."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, NoReturn

from statelog.domain.execution import PermanentStepError, TransientStepError

GZIP_MAGIC: Final = b"\x1f\x8b"
LONGEST_LINE: Final = 64 << 20
"""Bytes; a longer line is refused, so that a file without line ends cannot fill the memory."""

_HEADER = bytes(range(32, 127)) + b"\t"
_BASES = b"ABCDGHKMNRSTUVWXYabcdghkmnrstuvwxy.-*"
_QUALITIES = bytes(range(33, 127))
_CONTROL = bytes(set(range(32)) - {9}) + b"\x7f"

_CUT = "The file may have been cut off on its way: compare its size and checksum with the original."
_ORDER = "Each record has four lines: @name, sequence, +, quality. Wrapped sequences are not read."
_TEXT = "FASTQ is text, plain or gzip. BAM, SRA and zip files have to be converted first."
_PHRED = "Quality characters run from ! (0) to ~ (93), as in Phred+33."


class Record(NamedTuple):
    """One read: its number from 1, and the three lines that say something, without line ends."""

    number: int
    header: bytes
    sequence: bytes
    quality: bytes


class _Tap(io.RawIOBase):
    """A file that counts and hashes the bytes that are read from it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.count = 0
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._file.readinto(buffer) or 0
        self.count += size
        self.sha256.update(memoryview(buffer)[:size])
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a gzip file, up to the very place where it is damaged."""

    def __init__(self, source: IO[bytes]) -> None:
        self._file = gzip.GzipFile(fileobj=source, mode="rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def open_failed(path: Path, error: OSError) -> PermanentStepError:
    """The failure of a step whose file cannot be opened."""
    return PermanentStepError(
        f"{path}: cannot be read: {error.strerror or error}",
        code="unreadable_file",
        advice="A relative path starts at the directory the program was started in.",
    )


class Reads:
    """The records of one FASTQ file, read once; a context manager.

    An empty file has no records, a read may have length zero, and lines may end in CRLF. Raises
    `PermanentStepError` with code `malformed_fastq` that names file, record and line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = 0
        self.line = 0
        try:
            self.size = path.stat().st_size
            self._tap = _Tap(path)
        except OSError as error:
            raise open_failed(path, error) from error
        source = io.BufferedReader(self._tap, 1 << 18)
        self.compressed = source.peek(2)[:2] == GZIP_MAGIC
        self._source = source
        self._lines = io.BufferedReader(_Unpacked(source), 1 << 18) if self.compressed else source

    def __enter__(self) -> Reads:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._source.close()

    @property
    def percent(self) -> float:
        """How much of the file has been read, by bytes on disk."""
        return 100.0 * self._tap.count / self.size if self.size else 100.0

    def __iter__(self) -> Iterator[Record]:
        while (header := self._next()) is not None:
            if not header and self._ends_here():
                return
            self.record += 1
            yield self._body(header)

    def same_as(self, sha256: str) -> None:
        """Raise `TransientStepError` when the bytes read are not the ones with that checksum."""
        while self._source.read(1 << 18):
            pass
        if self._tap.sha256.hexdigest() != sha256:
            raise TransientStepError(
                f"{self.path}: the file changed after its checksum was taken",
                code="reads_changed",
                advice="Run the plan again when nothing writes to the file any more.",
            )

    def _body(self, header: bytes) -> Record:
        if header.translate(None, _HEADER):
            self._check_text(header)
        if header[:1] != b"@":
            self._bad(f"starts with {_show(header)} where a name with @ is expected", _ORDER)
        sequence = self._inside("sequence")
        if sequence.translate(None, _BASES):
            self._bad_sequence(sequence)
        plus = self._inside("+ line")
        self._check_plus(plus, header)
        quality = self._inside("quality", legal_end=not sequence)
        if quality.translate(None, _QUALITIES):
            self._bad_quality(quality)
        if len(quality) != len(sequence):
            word = "shorter" if len(quality) < len(sequence) else "longer"
            self._bad(
                f"the quality is {word} than the sequence"
                f" ({len(quality)} characters for {len(sequence)} bases)",
                _CUT if word == "shorter" else _ORDER,
            )
        return Record(self.record, header, sequence, quality)

    def _check_plus(self, plus: bytes, header: bytes) -> None:
        if plus == b"+":
            return
        self._check_text(plus)
        if plus[:1] != b"+":
            self._bad(f"starts with {_show(plus)} where + is expected", _ORDER)
        if plus[1:] != header[1:]:
            self._bad(f"the + line repeats another name, {_show(plus[1:])}", _ORDER)

    def _bad_sequence(self, sequence: bytes) -> NoReturn:
        self._check_text(sequence)
        wrong = sequence.translate(None, _BASES)[:1]
        where = sequence.index(wrong) + 1
        self._bad(f"{_show(wrong)} at position {where} of the sequence is not a base", _ORDER)

    def _bad_quality(self, quality: bytes) -> NoReturn:
        wrong = quality.translate(None, _QUALITIES)[:1]
        where = quality.index(wrong) + 1
        self._bad(
            f"{_show(wrong)} at position {where} is not a quality character (out of range)", _PHRED
        )

    def _check_text(self, line: bytes) -> None:
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            self._bad("is not text (the bytes are not ASCII or UTF-8)", _TEXT)
        if len(line) != len(line.translate(None, _CONTROL)):
            self._bad("is not text (it holds control characters)", _TEXT)

    def _inside(self, what: str, *, legal_end: bool = False) -> bytes:
        line = self._next()
        if line is not None:
            return line
        if legal_end:
            return b""
        self.line += 1
        self._bad(f"the record is truncated: the file ends before its {what}", _CUT)

    def _next(self) -> bytes | None:
        try:
            line = self._lines.readline(LONGEST_LINE)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.line += 1
            self._bad_line(f"the gzip data is damaged or truncated ({error})", _CUT)
        if not line:
            return None
        self.line += 1
        if len(line) == LONGEST_LINE:
            self._bad_line("has no end within 64 MiB", _TEXT)
        return line.rstrip(b"\r\n") if line[-1] == 10 else line

    def _ends_here(self) -> bool:
        """Whether nothing but blank lines follows."""
        line = self.line
        while (more := self._next()) is not None:
            if more:
                self.line, self.record = line, self.record + 1
                self._bad("is blank where a name with @ is expected", _ORDER)
        return True

    def _bad_line(self, what: str, advice: str) -> NoReturn:
        """Refuse a line before it is known whether it begins a record."""
        self.record += self.line % 4 == 1
        self._bad(what, advice)

    def _bad(self, what: str, advice: str) -> NoReturn:
        where = f"{self.path}: record {max(self.record, 1)}, line {self.line}"
        raise PermanentStepError(f"{where}: {what}", code="malformed_fastq", advice=advice)


def _show(line: bytes) -> str:
    """At most 20 characters of a line, quoted."""
    text = line[:20].decode("utf-8", "backslashreplace")
    return repr(text + ("..." if len(line) > 20 else ""))
