"""Bringing workspaces over: what is moved, what is left alone, what is refused (4.3)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.infrastructure.runs.folders import folder_name
from statelog.infrastructure.runs.outputs import expected, observe
from statelog.infrastructure.runs.workspaces import (
    Abandoned,
    Moved,
    WorkspaceError,
    stays_inside,
    synchronise,
)


class Two:
    """A producer's and a consumer's workspace."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = folder / "source", folder / "target"
        self.spare = folder / "spare"
        self.source.mkdir()
        self.target.mkdir()

    def bring(self, **given) -> Moved:
        return synchronise(self.source, self.target, self.spare, **given)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_files_folders_and_links_come_over(two: Two):
    """With their modes and times; an empty folder too; nothing stays in the spare folder."""
    (two.source / "deep" / "er").mkdir(parents=True)
    (two.source / "empty").mkdir()
    tool = two.source / "deep" / "tool"
    tool.write_bytes(b"#!/bin/sh\n")
    tool.chmod(0o750)
    os.utime(tool, (1000, 2000))
    (two.source / "deep" / "er" / "link").symlink_to("../tool")
    moved = two.bring()
    there = two.target / "deep" / "tool"
    assert there.read_bytes() == b"#!/bin/sh\n"
    assert stat.S_IMODE(there.stat().st_mode) == 0o750
    assert there.stat().st_mtime == 2000
    assert (two.target / "empty").is_dir()
    assert os.readlink(two.target / "deep" / "er" / "link") == "../tool"
    assert (moved.bytes, moved.logical_bytes, moved.files) == (10, 10, 1)
    assert moved.started_at <= moved.finished_at
    assert list(two.spare.iterdir()) == []


def test_what_is_there_already_is_left_alone(two: Two):
    """Done again after a crash in between, it moves the rest and counts that alone."""
    for name in "ab":
        (two.source / name).write_text(name * 3)
    (two.target / "a").write_text("aaa")
    os.utime(two.target / "a", (1, 1))
    moved = two.bring()
    assert (moved.bytes, moved.logical_bytes, moved.files) == (3, 6, 1)
    assert (two.target / "a").stat().st_mtime == 1
    assert two.bring().bytes == 0


def test_a_changed_copy_does_not_change_its_source(two: Two):
    """Consumers work on files of their own."""
    (two.source / "f").write_text("one")
    two.bring()
    with (two.target / "f").open("a") as file:
        file.write(" more")
    assert (two.source / "f").read_text() == "one"


@pytest.mark.parametrize(
    "there",
    [
        lambda path: path.write_text("two"),
        lambda path: path.write_text("one more"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("elsewhere"),
    ],
    ids=["content", "size", "folder", "link"],
)
def test_something_else_at_the_same_path_is_refused(two: Two, there):
    """The path is named, and what is there stays."""
    (two.source / "d").mkdir()
    (two.source / "d" / "f").write_text("one")
    (two.target / "d").mkdir()
    there(two.target / "d" / "f")
    before = os.lstat(two.target / "d" / "f")
    with pytest.raises(WorkspaceError, match="'d/f' is there already"):
        two.bring()
    assert os.lstat(two.target / "d" / "f").st_mtime_ns == before.st_mtime_ns


def test_a_folder_where_a_link_is_does_not_write_through_it(two: Two, tmp_path: Path):
    """One producer left a link to a folder, another a folder with that name."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (two.source / "d").mkdir()
    (two.source / "d" / "f").write_text("x")
    (two.target / "d").symlink_to(outside)
    with pytest.raises(WorkspaceError, match="'d' is there already"):
        two.bring()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("text", ["/etc/passwd", "../x", "../../etc", "a/../../x", "a/.."])
def test_a_link_that_may_lead_out_is_refused(two: Two, text: str):
    """Absolute ones, those above the top, and those that go up behind another link."""
    (two.source / "link").symlink_to(text)
    with pytest.raises(WorkspaceError, match="leads out"):
        two.bring()
    assert list(two.target.iterdir()) == []


def test_nothing_is_followed(two: Two, tmp_path: Path):
    """A link to a folder comes over as a link; a workspace that is a link is none."""
    (two.source / "d").mkdir()
    (two.source / "to").symlink_to("d")
    two.bring()
    assert (two.target / "to").is_symlink()
    alias = tmp_path / "alias"
    alias.symlink_to(two.source)
    with pytest.raises(WorkspaceError, match="is gone"):
        synchronise(alias, two.target, two.spare)


def test_pipes_are_left_behind_and_block_nothing(two: Two):
    """They are counted."""
    os.mkfifo(two.source / "pipe")
    assert two.bring().skipped == 1
    assert list(two.target.iterdir()) == []


def test_a_workspace_that_is_gone_is_named(two: Two):
    """A producer that was kept and whose files somebody removed."""
    two.source.rmdir()
    with pytest.raises(WorkspaceError, match="the workspace 'source' of a producer is gone"):
        two.bring()


def test_it_can_be_asked_to_leave(two: Two):
    """Between two files."""
    for name in "abc":
        (two.source / name).write_text(name)
    asked = iter([False, False, True])
    with pytest.raises(Abandoned):
        two.bring(leave=lambda: next(asked))
    assert [path.name for path in two.target.iterdir()] == ["a"]


PARTS = st.lists(st.sampled_from(["..", ".", "a", "b", ""]), min_size=1, max_size=5)


@given(links=st.lists(st.tuples(st.sampled_from(["x", "a/x", "a/b/x"]), PARTS), max_size=3))
@settings(max_examples=150, deadline=None)
def test_links_that_come_over_never_lead_out(links, tmp_path_factory):
    """Whatever links a workspace has: if all of them stay inside by themselves, no walk over
    several of them leaves.
    """
    top = tmp_path_factory.mktemp("top") / "w"
    (top / "a" / "b").mkdir(parents=True)
    made = []
    for relative, parts in links:
        text = "/".join(parts)
        path = top / relative
        if text and stays_inside(relative, text) and not os.path.lexists(path):
            path.symlink_to(text)
            made.append(path)
    for path in made:
        real = Path(os.path.realpath(path))
        assert real == top or real.is_relative_to(top)


def test_outputs_inside_are_summed_and_others_are_missing(tmp_path: Path):
    """A link inside counts by what it leads to, one that leads out does not, nor does a loop."""
    workspace = tmp_path / "w"
    workspace.mkdir()
    (tmp_path / "secret").write_text("s")
    (workspace / "f").write_text("abc")
    (workspace / "in").symlink_to("f")
    (workspace / "out").symlink_to("../secret")
    (workspace / "loop").symlink_to("loop")
    os.mkfifo(workspace / "pipe")
    found = observe(workspace, ["f", "in", "out", "loop", "pipe", "none/deep"])
    assert [each["path"] for each in found.outputs] == ["f", "in"]
    assert found.outputs[0]["sha256"] == found.outputs[1]["sha256"]
    assert found.missing == ("out", "loop", "pipe", "none/deep")


@pytest.mark.parametrize("there", [False, True], ids=["to copy", "to compare"])
def test_a_large_file_can_be_left_in_the_middle(two: Two, there: bool):
    """And what was begun of it is not there, neither in its place nor beside it."""
    for folder in (two.source, two.target)[: 1 + there]:
        (folder / "big").touch()
        os.truncate(folder / "big", 64 * 1024 * 1024)
    asked = 0

    def leave() -> bool:
        nonlocal asked
        asked += 1
        return asked > 5

    with pytest.raises(Abandoned):
        two.bring(leave=leave)
    assert asked == 6
    assert (two.target / "big").exists() == there
    assert not (two.spare.exists() and os.listdir(two.spare))


def test_adding_up_a_large_output_can_be_left(tmp_path: Path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "big").touch()
    os.truncate(tmp_path / "d" / "big", 64 * 1024 * 1024)
    answers = iter((False, False, True) * 2)
    for path in ("d", "d/big"):
        with pytest.raises(Abandoned):
            observe(tmp_path, [path], lambda: next(answers))
    assert list(answers) == []


@pytest.mark.parametrize("given", ["f", [1], ["/f"], ["../f"], [""], [{}], [{"path": 3}]])
def test_outputs_that_cannot_be_meant_are_refused(given):
    """The field is named."""
    with pytest.raises(Invalid, match="expectedOutputs"):
        expected({"expectedOutputs": given})


@given(st.text(min_size=1, max_size=300))
def test_any_id_is_one_safe_name(id: str):
    """No separator, not hidden, not the folder itself or the one above, and short enough."""
    try:
        id.encode()
    except UnicodeEncodeError:
        return
    name = folder_name(id)
    assert "/" not in name
    assert not name.startswith(".")
    assert len(os.fsencode(name)) <= 255


def test_long_ids_that_differ_have_names_that_differ():
    """They are told apart by a hash."""
    assert folder_name("x" * 500) != folder_name("x" * 501)
