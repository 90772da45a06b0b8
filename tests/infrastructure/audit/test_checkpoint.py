"""Checkpoints are notes as C2SP has them, and a signature holds for one text and one key."""

from __future__ import annotations

import re
import sys
from base64 import b64decode, b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PublicFormat,
)

from statelog.domain.errors import Invalid
from statelog.infrastructure.audit import checkpoint as checkpoints
from statelog.infrastructure.audit.checkpoint import Checkpoint, Signature, parse_checkpoint
from statelog.infrastructure.audit.signing import (
    Signed,
    check_signature,
    key_id,
    public_of,
    signed,
    verifier_key,
)
from tests.house.repo import ROOT
from tests.infrastructure.audit.keys import KEY, OTHER, private, public

PUBLISHED = """example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa \
Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
"""
"""The example of c2sp.org/tlog-checkpoint."""

PLAIN = Checkpoint("example.com/log", 7, bytes(range(32)))


SIGNED = signed(PLAIN, private(KEY))


def test_the_published_example_is_read_and_written():
    """Origin, size, root and signature; and it is the same text again."""
    found = parse_checkpoint(PUBLISHED.encode())
    assert (found.origin, found.size) == ("example.com/behind-the-sofa", 20852163)
    assert found.root.hex().startswith("0ac5186a91863e8e")
    (signature,) = found.signatures
    assert (signature.name, signature.key_id.hex()) == (found.origin, "033de0ae")
    assert len(signature.value) == 64
    assert str(found) == PUBLISHED


def test_keys_have_the_ids_and_signatures_that_other_tools_give_them():
    """The key and the note in the documentation of Go's package `note`."""
    vkey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    name, id, encoded = vkey.split("+")
    raw = b64decode(encoded)[1:]
    assert key_id(name, raw).hex() == id
    assert verifier_key(name, raw) == vkey
    text = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
    )
    signature = b64decode(
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    )
    assert signature[:4].hex() == id
    Ed25519PublicKey.from_public_bytes(raw).verify(signature[4:], text.encode())


@pytest.mark.parametrize("extensions", [(), ("a: 1",), ("one", "two — three")])
@pytest.mark.parametrize("keys", [(), (KEY,), (KEY, OTHER)], ids=["unsigned", "one", "two"])
def test_what_is_written_is_read(extensions: tuple[str, ...], keys):
    """Any size, any extension lines, any number of signatures; byte for byte."""
    for size in (0, 1, 10**18):
        made = Checkpoint("lab, of ours" if not keys else "o/ä", size, b"\xff" * 32, extensions)
        for key in keys:
            made = signed(made, private(key))
        assert parse_checkpoint(str(made).encode()) == made


def test_an_unsigned_checkpoint_is_three_lines():
    """And no empty line: nothing pretends to be a signature."""
    assert str(PLAIN) == f"example.com/log\n7\n{b64encode(PLAIN.root).decode()}\n"


def test_the_example_of_the_page_is_one():
    """docs/reference/checkpoint.md shows a note and the key that made its signature."""
    text = (ROOT / "docs/reference/checkpoint.md").read_text(encoding="utf-8")
    note, vkey = re.findall(r"```text\n(.*?)```", text, re.S)[:2]
    found, raw = parse_checkpoint(note.encode()), b64decode(vkey.split("+", 2)[2])[1:]
    assert verifier_key(found.origin, raw) == vkey.strip()
    key = Ed25519PublicKey.from_public_bytes(raw)
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert check_signature(found, pem) is Signed.GOOD


ROOT_LINE = b64encode(PLAIN.root).decode()
GOOD_LINE = str(SIGNED).splitlines()[-1]
BROKEN = {
    "empty": "",
    "no newline at the end": "o\n7\n" + ROOT_LINE,
    "two lines": f"o\n{ROOT_LINE}\n",
    "an empty origin": f"\n7\n{ROOT_LINE}\n",
    "a leading zero": f"o\n07\n{ROOT_LINE}\n",
    "a sign": f"o\n-7\n{ROOT_LINE}\n",
    "another script's digits": f"o\n\N{ARABIC-INDIC DIGIT SEVEN}\n{ROOT_LINE}\n",
    "a size beyond 64 bits": f"o\n{10**19}\n{ROOT_LINE}\n",
    "a short root": f"o\n7\n{b64encode(bytes(31)).decode()}\n",
    "no padding": f"o\n7\n{ROOT_LINE[:-1]}\n",
    "bits to spare": f"o\n7\n{ROOT_LINE[:-2]}9=\n",
    "a blank in the root": f"o\n7\n {ROOT_LINE}\n",
    "carriage returns": f"o\r\n7\r\n{ROOT_LINE}\r\n",
    "a tab": f"o\to\n7\n{ROOT_LINE}\n",
    "an empty line at the end": f"o\n7\n{ROOT_LINE}\n\n",
    "an empty line in the text": f"o\n7\n{ROOT_LINE}\n\nx\n\n{GOOD_LINE}\n",
    "a hyphen for the dash": f"o\n7\n{ROOT_LINE}\n\n{GOOD_LINE.replace('—', '-')}\n",
    "a signature of nothing": f"o\n7\n{ROOT_LINE}\n\n— o {b64encode(bytes(4)).decode()}\n",
    "a plus in a name": f"o\n7\n{ROOT_LINE}\n\n— o+o {GOOD_LINE.split()[2]}\n",
    "a wide space in a name": f"o\n7\n{ROOT_LINE}\n\n— o\u2003o {GOOD_LINE.split()[2]}\n",
    "too much": "o\n7\n" + ROOT_LINE + "\n" + "x\n" * checkpoints.LIMIT,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_no_checkpoint_is_refused(text: str):
    """By the letter of the format: one text for one checkpoint."""
    with pytest.raises(Invalid):
        parse_checkpoint(text.encode())


def test_what_is_not_utf8_is_refused():
    with pytest.raises(Invalid, match="UTF-8"):
        parse_checkpoint(b"\xff\n" + str(PLAIN).encode())


@pytest.mark.parametrize(
    "given",
    [{"origin": ""}, {"origin": "a\nb"}, {"size": -1}, {"root": b"x"}, {"extensions": ("",)}],
    ids=str,
)
def test_what_cannot_be_written_is_not_made(given):
    """No checkpoint would be read as another one."""
    with pytest.raises(Invalid):
        Checkpoint(**{**vars(PLAIN), **given})


def test_a_signature_is_good_for_its_key_alone():
    """Good; by another key; none at all; another's beside it is passed over."""
    assert check_signature(SIGNED, public(KEY)) is Signed.GOOD
    assert check_signature(SIGNED, public(OTHER)) is Signed.MISSING
    assert check_signature(PLAIN, public(KEY)) is Signed.MISSING
    both = signed(SIGNED, private(OTHER))
    assert check_signature(both, public(KEY)) is check_signature(both, public(OTHER)) is Signed.GOOD


def test_every_byte_of_a_signed_note_counts():
    """Whatever bit is flipped, the note is refused, or its signature is not good."""
    note, good = str(SIGNED).encode(), 0
    for place in range(len(note)):
        for bit in range(8):
            changed = bytearray(note)
            changed[place] ^= 1 << bit
            try:
                good += (
                    check_signature(parse_checkpoint(bytes(changed)), public(KEY)) is Signed.GOOD
                )
            except Invalid:
                continue
    assert good == 0


def test_a_signature_of_another_text_is_bad():
    """Origin, size, root and extension lines are all signed."""
    for given in ({"size": 8}, {"root": bytes(32)}, {"extensions": ("x",)}):
        assert check_signature(Checkpoint(**{**vars(SIGNED), **given}), public(KEY)) is Signed.BAD
    renamed = Checkpoint(**{**vars(SIGNED), "origin": "example.com/other"})
    assert check_signature(renamed, public(KEY)) is Signed.MISSING


def test_one_bad_signature_of_a_key_spoils_a_good_one():
    """A known key whose signature does not verify is no reason to look for a better one."""
    (good,) = SIGNED.signatures
    bad = Signature(good.name, good.key_id, bytes(64))
    assert check_signature(SIGNED.with_signature(bad), public(KEY)) is Signed.BAD


def test_a_short_signature_is_bad():
    """Whatever its length."""
    (good,) = SIGNED.signatures
    for value in (good.value[:-1], good.value + b"\0", b"\0"):
        short = PLAIN.with_signature(Signature(good.name, good.key_id, value))
        assert check_signature(short, public(KEY)) is Signed.BAD


EC = generate_private_key(SECP256R1())


@pytest.mark.parametrize(
    ("pem", "why"),
    [
        (b"", "not a private key"),
        (public(KEY), "not a private key"),
        (private(EC), "not an Ed25519 key"),
        (private(KEY, BestAvailableEncryption(b"secret")), "encrypted"),
    ],
    ids=["nothing", "public", "another kind", "encrypted"],
)
def test_what_is_no_key_cannot_sign(pem: bytes, why: str):
    with pytest.raises(Invalid, match=why):
        signed(PLAIN, pem)


@pytest.mark.parametrize("pem", [b"", private(KEY), public(EC)], ids=["nothing", "private", "EC"])
def test_what_is_no_public_key_checks_nothing(pem: bytes):
    with pytest.raises(Invalid, match="public key"):
        check_signature(SIGNED, pem)


@pytest.mark.parametrize("origin", ["two words", "a+b", "a\u00a0b"])
def test_an_origin_that_is_no_name_cannot_be_signed(origin: str):
    """Other tools could not read the signature line."""
    with pytest.raises(Invalid, match="origin"):
        signed(Checkpoint(origin, 1, bytes(32)), private(KEY))


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch):
    """What to install, in one line."""
    for name in [each for each in sys.modules if each.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for act in (
        lambda: signed(PLAIN, b""),
        lambda: check_signature(SIGNED, b""),
        lambda: public_of(b""),
    ):
        with pytest.raises(Invalid, match=r"pip install 'statelog\[sign\]'"):
            act()
