"""`log seal` and `log verify-seal`: files, exit codes, keys, JSON."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from statelog.infrastructure.audit.checkpoint import parse_checkpoint
from statelog.infrastructure.cli import log_seal
from tests.infrastructure.audit.keys import KEY, private, public
from tests.infrastructure.cli.desk import Desk, a_step


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """A desk where a plan was run."""
    assert desk("run", desk.plan(a_step("a"))).code == 0
    return desk


@pytest.fixture
def keys(ran: Desk) -> tuple[Path, Path]:
    """A private and a public key in files."""
    pair = ran.folder / "key.pem", ran.folder / "public.pem"
    for path, pem in zip(pair, (private(KEY), public(KEY)), strict=True):
        path.write_bytes(pem)
    return pair


@pytest.fixture
def tamper(ran: Desk, damaged_store: Callable[[Path], None]) -> Callable[[str], None]:
    """Change the store by hand."""
    damaged_store(ran.store)

    def change(statement: str) -> None:
        with closing(sqlite3.connect(ran.store)) as db:
            db.execute(statement)
            db.commit()

    return change


def test_a_checkpoint_on_stdout_is_one(ran: Desk):
    """The text and nothing else; given back it holds."""
    done = ran("log", "seal")
    assert (done.code, done.err) == (0, "")
    assert parse_checkpoint(done.out.encode()).size == len(ran.events())
    verified = ran("log", "verify-seal", ran.file(done.out, "c.txt"))
    assert verified.code == 0
    for part in ("as they were sealed", "not signed", "0 payloads erased", "0 later events"):
        assert part in verified.out


def test_a_checkpoint_in_a_file(ran: Desk):
    """Whole or not at all, and said where."""
    before = ran.files
    done = ran("log", "seal", "-o", "c.txt", "--origin", "example.com/log")
    assert (done.code, "sealed in c.txt" in done.out) == (0, True)
    assert ran.files == before | {"c.txt"}
    assert Path("c.txt").read_text().startswith("example.com/log\n")
    assert ran("log", "verify-seal", "c.txt").code == 0


def test_a_log_that_grew_is_sealed_over_its_old_checkpoint(ran: Desk):
    """The old one holds, so the new one says all that it said."""
    ran("log", "seal", "-o", "c.txt")
    ran("plan", "touch", "p")
    assert "1 later events" in ran("log", "verify-seal", "c.txt").out
    assert ran("log", "seal", "-o", "c.txt").code == 0
    assert "0 later events" in ran("log", "verify-seal", "c.txt").out


def test_evidence_is_not_sealed_over(ran: Desk, tamper: Callable[[str], None]):
    """A log that was rewritten, hashes and all, gets no new checkpoint in place of the old."""
    ran("log", "seal", "-o", "c.txt")
    before = Path("c.txt").read_text()
    tamper("DELETE FROM events WHERE position = (SELECT max(position) FROM events)")
    done = ran("log", "seal", "-o", "c.txt")
    assert done.code == 1
    assert "c.txt was left as it is" in done.error
    assert "cut off" in done.error
    assert Path("c.txt").read_text() == before


def test_other_files_are_left_alone(ran: Desk):
    """Nothing that is no checkpoint is written over, and no folder."""
    plan = ran.file("a plan\n", "notes.txt")
    assert ran("log", "seal", "-o", plan).code == 2
    assert plan.read_text() == "a plan\n"
    assert ran("log", "seal", "-o", ran.folder).code == 2
    assert ran("log", "seal", "-o", ran.folder / "no" / "c.txt").code == 1


def test_the_first_event_that_was_changed_is_named(ran: Desk, tamper: Callable[[str], None]):
    """Exit code 1, position and kind, for people and as JSON."""
    ran("log", "seal", "-o", "c.txt")
    tamper("UPDATE events SET data = CAST(data || ' ' AS BLOB) WHERE position IN (3, 5)")
    done = ran("log", "verify-seal", "c.txt")
    assert (done.code, done.out.startswith("event 3: changed data: ")) == (1, True)
    told = ran("log", "verify-seal", "c.txt", "--json")
    assert told.code == 1
    assert (told.json["ok"], told.json["finding"]["position"]) == (False, 3)
    assert set(told.json["finding"]) == {"position", "kind", "why"}
    assert ran("log", "seal").code == 1


def test_the_fields_of_json(ran: Desk, keys: tuple[Path, Path]):
    """Those of the reference, in its order."""
    key, public_key = keys
    plain = ran("log", "seal", "--json")
    facts = ["origin", "size", "root", "signed"]
    assert list(plain.json) == [*facts, "verifier_key", "file", "checkpoint"]
    assert (plain.json["signed"], plain.json["verifier_key"], plain.json["file"]) == (
        *(False, None, None),
    )
    made = ran("log", "seal", "--json", "--key", key, "-o", "c.txt", "--origin", "lab")
    assert made.json["verifier_key"].startswith("lab+")
    assert made.json["file"] == "c.txt"
    assert made.json["checkpoint"] == Path("c.txt").read_text()
    told = ran("log", "verify-seal", "c.txt", "--public-key", public_key, "--json").json
    assert list(told) == ["ok", *facts, "signature", "erased", "later", "finding"]
    assert (told["ok"], told["signature"], told["finding"]) == (True, "good", None)
    assert (
        told["root"] == made.json["root"] == parse_checkpoint(Path("c.txt").read_bytes()).root.hex()
    )


def test_a_signature_is_good_bad_missing_or_not_looked_at(ran: Desk, keys: tuple[Path, Path]):
    """Only a good one, or none that was asked for, ends with 0."""
    key, public_key = keys
    ran("log", "seal", "-o", "c.txt", "--key", key)
    good = ran("log", "verify-seal", "c.txt", "--public-key", public_key)
    assert (good.code, "signed by statelog/" in good.out) == (0, True)
    assert "not checked: give --public-key" in ran("log", "verify-seal", "c.txt").out
    plain = ran.file(ran("log", "seal").out, "plain.txt")
    missing = ran("log", "verify-seal", plain, "--public-key", public_key)
    assert (missing.code, "did not sign it" in missing.out) == (1, True)
    changed = ran.file(Path("c.txt").read_text().replace("\n\n", "\nmore\n\n"), "changed.txt")
    bad = ran("log", "verify-seal", changed, "--public-key", public_key)
    assert (bad.code, "was changed" in bad.out) == (1, True)
    told = ran("log", "verify-seal", changed, "--public-key", public_key, "--json")
    assert (told.code, told.json["signature"], told.json["ok"]) == (1, "bad", False)
    assert (told.json["finding"], told.json["later"], told.json["erased"]) == (None, None, None)


def test_a_checkpoint_that_is_none_is_wrong_input(ran: Desk):
    """Exit code 2 and one line; 1 for a file that is not there."""
    done = ran("log", "verify-seal", ran.file("nothing\n", "c.txt"))
    assert (done.code, "checkpoint: is none" in done.error) == (2, True)
    assert ran("log", "verify-seal", "none.txt").code == 1
    assert ran("log", "seal", "--key", ran.file("no key", "k.pem")).code == 2
    assert ran("log", "seal", "--key", "none.pem").code == 2


def test_a_store_that_is_not_there_is_not_made(desk: Desk):
    """Nothing to seal, nothing made."""
    note = desk.file("o\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", "c.txt")
    for words in (("seal",), ("verify-seal", note)):
        assert desk("log", *words).code == 1
    assert desk.files == {"c.txt", "steps.py"}


def test_long_logs_tell_how_far_they_are(capsys: pytest.CaptureFixture[str]):
    """On stderr, every 100,000 events; short ones are silent."""
    progress = log_seal._progress("sealing")
    for done in range(500, 250_001, 500):
        progress(done, 1_000_000)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "sealing: 100,000 of 1,000,000 events",
        "sealing: 200,000 of 1,000,000 events",
    ]


def test_without_the_extra_unsigned_checkpoints_work(
    ran: Desk, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    """And what needs it says what to install."""
    key, public_key = keys
    ran("log", "seal", "-o", "c.txt", "--key", key)
    for name in [each for each in sys.modules if each.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for words in (("seal", "--key", key), ("verify-seal", "c.txt", "--public-key", public_key)):
        done = ran("log", *words)
        assert (done.code, "pip install 'statelog[sign]'" in done.error) == (2, True)
    assert ran("log", "seal").code == 0
    assert ran("log", "verify-seal", "c.txt").code == 0
