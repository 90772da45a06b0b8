"""`statelog log seal` and `verify-seal`: a checkpoint over the log, and whether it still holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.output import emit, printable, show, tell

if TYPE_CHECKING:
    from statelog.infrastructure.audit.checkpoint import Checkpoint
    from statelog.infrastructure.audit.sealing import Verdict
    from statelog.infrastructure.journal import Journal

_EVERY: Final = 100_000
_KEY: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def add_to(log: click.Group) -> None:
    """Register the commands."""
    _seal(log)
    _verify(log)


def _seal(log: click.Group) -> None:
    @command(log, "seal", epilog="Example: statelog log seal -o checkpoint.txt --key key.pem")
    @click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the checkpoint here (default: stdout), over an older one if it still holds.",
    )
    @click.option("--key", type=_KEY, help="A private Ed25519 key in PEM: sign the checkpoint.")
    @click.option(
        "--origin",
        metavar="TEXT",
        help="The log's name in the checkpoint (default: made of its first leaf hash).",
    )
    def seal(
        settings: Settings, *, output: Path | None, key: Path | None, origin: str | None
    ) -> None:
        """Write a checkpoint: one hash that stands for every event so far.

        Keep it where nobody who can write the store can change it. Every event is checked first.
        """
        from statelog.infrastructure.audit import sealing, signing

        pem = None if key is None else key.read_bytes()
        with settings.journal() as journal:
            if output is not None:
                _keep_evidence(journal, output)
            made = sealing.seal(journal, origin=origin, key=pem, progress=_progress("sealing"))
        if output is not None:
            _write(output, str(made))
        if settings.as_json:
            public = None if pem is None else signing.public_of(pem)
            name = None if public is None else signing.verifier_key(made.origin, public)
            file = None if output is None else str(output)
            emit({**_facts(made), "verifier_key": name, "file": file, "checkpoint": str(made)})
        elif output is None:
            click.echo(str(made), nl=False)
        else:
            show(printable(f"{made.size:,} events sealed in {output}: root {made.root.hex()}"))


def _verify(log: click.Group) -> None:
    @command(log, "verify-seal", epilog="Example: statelog log verify-seal checkpoint.txt")
    @click.argument("checkpoint", type=click.Path(dir_okay=False, path_type=Path))
    @click.option(
        "--public-key", type=_KEY, help="A public Ed25519 key in PEM that must have signed it."
    )
    def verify_seal(settings: Settings, *, checkpoint: Path, public_key: Path | None) -> int:
        """Compare the log with the checkpoint in the file CHECKPOINT.

        Finds every event below it that was changed, moved, removed, inserted or cut off, and says
        which is the first. Exit code 1 when there is one, or when the signature is not good.
        """
        from statelog.infrastructure.audit import sealing, signing

        found = _read(checkpoint)
        signature = "unchecked" if found.signatures else "none"
        if public_key is not None:
            signature = signing.check_signature(found, public_key.read_bytes()).value
        verdict = None
        if signature not in ("bad", "missing"):
            with settings.journal() as journal:
                verdict = sealing.verify(journal, found, _progress("verifying"))
        good = verdict is not None and verdict.finding is None
        if settings.as_json:
            emit(_result(found, signature, verdict))
        else:
            show(printable(_said(found, signature, verdict)))
        return OK if good else FAILED


def _keep_evidence(journal: Journal, output: Path) -> None:
    """A log that no longer fits its old checkpoint must not get a new one in its place."""
    from statelog.domain.errors import StoreError
    from statelog.infrastructure.audit import sealing

    if not os.path.lexists(output):
        return
    finding = sealing.verify(journal, _read(output), _progress("verifying")).finding
    if finding is not None:
        raise StoreError(
            "damaged", f"{output} was left as it is, since the log does not fit it: {finding}"
        )


def _read(path: Path) -> Checkpoint:
    from statelog.infrastructure.audit.checkpoint import LIMIT, parse_checkpoint

    with path.open("rb") as file:
        return parse_checkpoint(file.read(LIMIT + 1))


def _write(path: Path, text: str) -> None:
    """All of it or nothing: a checkpoint that is cut short would be worth nothing."""
    new = path.with_name(f"{path.name}.new-{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _progress(doing: str) -> Callable[[int, int], None]:
    def progress(done: int, size: int) -> None:
        if done % _EVERY == 0:
            tell(f"{doing}: {done:,} of {size:,} events")

    return progress


def _facts(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
        "signed": bool(checkpoint.signatures),
    }


def _result(checkpoint: Checkpoint, signature: str, verdict: Verdict | None) -> dict[str, Any]:
    finding = None if verdict is None else verdict.finding
    return {
        "ok": verdict is not None and finding is None,
        **_facts(checkpoint),
        "signature": signature,
        "erased": None if verdict is None else verdict.erased,
        "later": None if verdict is None else verdict.later,
        "finding": None if finding is None else vars(finding),
    }


def _said(checkpoint: Checkpoint, signature: str, verdict: Verdict | None) -> str:
    if verdict is None:
        why = {"bad": "its text or signature was changed", "missing": "this key did not sign it"}
        return f"the checkpoint is not to be trusted: {why[signature]}"
    if verdict.finding is not None:
        return str(verdict.finding)
    trust = {
        "good": f"signed by {checkpoint.origin}",
        "unchecked": "its signature was not checked: give --public-key",
        "none": "it is not signed",
    }
    return (
        f"the first {checkpoint.size:,} events are as they were sealed ({trust[signature]}); "
        f"{verdict.erased:,} payloads erased, {verdict.later:,} later events not covered"
    )
