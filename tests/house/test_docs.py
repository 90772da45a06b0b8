"""The pages are true: links lead somewhere, nothing names one machine, every version is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import statelog
from tests.house.repo import LAYERS, ROOT, name, pages

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
HEADING = re.compile(r"^#+ +(.+?) *$", re.M)
MACHINE = re.compile(r"(?<![\w.<])/(?:home|root|work|Users|tmp/\w|var/\w|mnt|opt)\b[\w./-]*")


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page make."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in plain}


def dead_links(page: Path, root: Path = ROOT) -> list[str]:
    """Every relative link of a page that leads nowhere, or out of the tree."""
    dead = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(root):
            dead.append(link)
            continue
        heading_is_missing = anchor and target.suffix == ".md" and anchor not in anchors(target)
        if heading_is_missing:
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_link_leads_somewhere(page: Path):
    """Relative links and their anchors resolve inside the tree."""
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path):
    """The check sees a missing file, and a missing heading."""
    page = tmp_path / "page.md"
    page.write_text("# Here\n[a](none.md) [b](#there) [c](#here) `[d](code.md)`\n")
    assert dead_links(page, tmp_path) == ["none.md", "#there"]


TEXTS = [
    path
    for folder in (*LAYERS, "docs", "adr", "tests/golden")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".json", ".jsonl", ".yaml", ".html"}
]


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *TEXTS], ids=name)
def test_nothing_names_one_machine(path: Path):
    """No page, source or example holds an absolute path of the machine it was written on."""
    assert MACHINE.findall(path.read_text(encoding="utf-8")) == []


def test_the_changelog_tells_of_this_version():
    """Each version has a heading that says what it means for a reader."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[?(\d+\.\d+\.\d+)\]?", text, re.M)
    assert versions[0] == statelog.__version__


def test_decisions_are_numbered_without_a_gap():
    """adr/0001-... onwards, and each has the parts that make it one."""
    records = sorted((ROOT / "adr").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        headings = set(HEADING.findall(path.read_text(encoding="utf-8")))
        assert {"Context", "Options", "Decision", "Consequences"} <= headings, path
    listed = re.findall(r"\((\d{4}-[\w-]+\.md)\)", (ROOT / "adr" / "README.md").read_text())
    assert listed == [path.name for path in records]
