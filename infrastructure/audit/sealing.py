"""Sealing a log: a checkpoint over it, and the proof that a log is still what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from statelog.domain.errors import Invalid, StoreError
from statelog.infrastructure.audit import findings
from statelog.infrastructure.audit.checkpoint import Checkpoint
from statelog.infrastructure.audit.findings import Finding, data_fits, leaf_of
from statelog.infrastructure.audit.merkle import Tree
from statelog.infrastructure.audit.signing import signed
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Row

Progress = Callable[[int, int], None]
"""Told how many events of how many are done, now and then."""

_PAGE = 500


@dataclass(frozen=True)
class Verdict:
    """What a log is compared with a checkpoint.

    `finding` is the first thing that is wrong, None when nothing is. `erased` counts events below
    the checkpoint whose payload is gone, which is legal; `later` the events after the checkpoint,
    which it says nothing about.
    """

    checkpoint: Checkpoint
    finding: Finding | None
    erased: int
    later: int


def seal(
    journal: Journal,
    *,
    origin: str | None = None,
    key: bytes | None = None,
    extensions: Sequence[str] = (),
    upto: int | None = None,
    progress: Progress | None = None,
) -> Checkpoint:
    """A checkpoint over a log up to a position (default: all of it), every event of it checked.

    `origin` names the log (default: `statelog/` and the first 16 hexadecimal digits of its first
    leaf hash); `key` is a private Ed25519 key in PEM that signs. Raises `Invalid`, and
    `StoreError` damaged for a log that does not fit its own hashes.
    """
    size = journal.head() if upto is None else upto
    name = _origin(journal) if origin is None else origin
    unsigned = Checkpoint(name, size, b"\0" * 32, tuple(extensions))
    if key is not None:
        signed(unsigned, key)  # a key that cannot be used is found before a long log is read
    seen = _Pass(journal, size, progress)
    if seen.finding is not None:
        raise StoreError("damaged", f"the log cannot be sealed: {seen.finding}")
    checkpoint = Checkpoint(name, size, seen.tree.root, tuple(extensions))
    return checkpoint if key is None else signed(checkpoint, key)


def verify(journal: Journal, checkpoint: Checkpoint, progress: Progress | None = None) -> Verdict:
    """Whether the first events of a log are those that a checkpoint was made over.

    Signatures are checked elsewhere. Raises `StoreError` when the store cannot be read at all.
    """
    seen = _Pass(journal, checkpoint.size, progress)
    finding = seen.finding
    if finding is None and seen.tree.root != checkpoint.root:
        finding = findings.rewritten(checkpoint, seen.tree.root)
    elif finding is not None and finding.kind == findings.HEADER:
        as_sealed = _root(journal, checkpoint.size) == checkpoint.root
        finding = findings.only_the_hash(finding) if as_sealed else finding
    later = max(0, journal.head() - checkpoint.size)
    return Verdict(checkpoint, finding, seen.erased, later)


def _origin(journal: Journal) -> str:
    first = next(journal.rows(upto=1), None)
    leaf = None if first is None else leaf_of(first)
    if leaf is None:
        raise Invalid("origin", "has no default for a log without a first event; name one")
    return f"statelog/{leaf.hex()[:16]}"


class _Pass:
    """One reading of a log up to a position, until the first event that does not fit."""

    def __init__(self, journal: Journal, size: int, progress: Progress | None) -> None:
        self.tree = Tree()
        self.erased = 0
        self.finding = findings.strays(journal)
        if self.finding is None:
            self.finding = self._read(journal, size, progress)

    def _read(self, journal: Journal, size: int, progress: Progress | None) -> Finding | None:
        for row in _rows(journal, size):
            if isinstance(row, Finding):
                return row
            if row.position != self.tree.size + 1:
                break
            leaf = leaf_of(row)
            if leaf is None or leaf != row.hash:
                return findings.header(journal, row)
            if not data_fits(row):
                return findings.data(row)
            self.tree.add(leaf)
            self.erased += row.data is None
            if progress is not None and row.position % _PAGE == 0:
                progress(row.position, size)
        if self.tree.size < size:
            return findings.gap(journal, self.tree.size + 1)
        return None


def _rows(journal: Journal, size: int) -> Iterator[Row | Finding]:
    """Rows up to a position, and what is said of those that cannot be read."""
    for after in range(0, size, _PAGE):
        upto = min(after + _PAGE, size)
        try:
            page: Sequence[Row | Finding] = list(journal.rows(after=after, upto=upto))
        except StoreError:
            page = [
                each
                for position in range(after, upto)
                for each in findings.readable(journal, position)
            ]
        yield from page


def _root(journal: Journal, size: int) -> bytes | None:
    """The root over the headers alone, whatever hashes are stored; None when one is missing."""
    tree = Tree()
    for row in _rows(journal, size):
        leaf = None if isinstance(row, Finding) else leaf_of(row)
        if leaf is None:
            return None
        tree.add(leaf)
    return tree.root
