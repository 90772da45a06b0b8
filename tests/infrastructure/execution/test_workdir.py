"""Work directories, markers, declared outputs and hashes (5.3 to 5.7)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.execution.faults import OrchestrationError
from statelog.domain.execution.spec import StepSpec
from statelog.infrastructure.execution.workdir import (
    StepDir,
    WorkDir,
    digest,
    hash_input,
    hash_inputs,
    work_root,
)

PRINT = "sha256:1234"
STORE = Path("/data/lab.db")


@pytest.fixture
def step(tmp_path: Path) -> StepDir:
    """The created directory of one step."""
    directory = WorkDir(tmp_path / "work", "p").step("qc")
    directory.create()
    return directory


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("given", "environ", "root"),
    [
        (Path("here"), {"STATELOG_WORK_ROOT": "/env"}, Path("here")),
        (None, {"STATELOG_WORK_ROOT": "/env"}, Path("/env")),
        (None, {"STATELOG_WORK_ROOT": ""}, Path("/data/lab.db.work")),
        (None, {}, Path("/data/lab.db.work")),
    ],
)
def test_the_work_root_is_as_given_or_of_the_environment_or_beside_the_store(
    given: Path | None, environ: dict[str, str], root: Path
):
    """5.6"""
    assert work_root(STORE, given, environ) == root


@pytest.mark.parametrize(
    ("step_id", "below"),
    [
        ("lane_1/process", ("lane_1", "process")),
        ("1.lane", ("1.lane",)),
        ("a%b", ("a%b",)),
        ("..lane", ("..lane",)),
        (" spaced ", (" spaced ",)),
        ("lane\\process", ("lane\\process",)),
        ("lane/0001_step_started.json", ("lane", "0001_step_started.json")),
    ],
)
def test_each_part_of_a_step_id_is_one_level_spelled_as_it_is(
    tmp_path: Path, step_id: str, below: tuple[str, ...]
):
    """case 22, on disk."""
    directory = WorkDir(tmp_path, "p").step(step_id)
    directory.create()
    assert directory.path == tmp_path.joinpath("p", *below)
    assert directory.path.is_dir()


def test_a_directory_that_is_there_stays_as_it_is(step: StepDir):
    """5.6: never cleaned."""
    (step.path / "left").write_text("over")
    step.create()
    assert names(step.path) == ["left"]


def test_asking_for_a_step_creates_nothing(tmp_path: Path):
    """case 18: a blocked step has no work directory."""
    directory = WorkDir(tmp_path / "work", "p").step("qc")
    assert directory.marker() is None
    assert directory.missing_outputs({"report": "r.txt"}) == (str(directory.path / "r.txt"),)
    assert names(tmp_path) == []


def test_a_directory_that_cannot_be_created_is_our_failure(tmp_path: Path):
    """5.2: step 1; the engine's own files collide with a step of that name."""
    work = WorkDir(tmp_path, "p")
    work.write_plan({})
    for step_id in ("plan.json", "plan.json/deeper"):
        with pytest.raises(OrchestrationError, match=r"plan\.json"):
            work.step(step_id).create()


def test_the_plan_file_is_readable_json_and_replaced_whole(tmp_path: Path):
    """5.6: rewritten each attempt."""
    work = WorkDir(tmp_path / "deep" / "root", "p")
    for body in ({"plan_id": "p", "note": "é" * 9}, {"plan_id": "p"}):
        work.write_plan(body)
        assert json.loads((work.path / "plan.json").read_text("utf-8")) == body
    assert names(work.path) == ["plan.json"]


def test_a_plan_file_that_cannot_be_written_is_our_failure(tmp_path: Path):
    """And what was there before stays."""
    work = WorkDir(tmp_path, "p")
    (work.path / "plan.json").mkdir(parents=True)
    with pytest.raises(OrchestrationError, match="plan file"):
        work.write_plan({})
    assert names(work.path) == ["plan.json"]


def test_a_marker_is_read_as_it_was_written(step: StepDir):
    """One file with a name of its own, trimmed when read."""
    assert step.marker() is None
    step.write_marker(PRINT)
    assert step.marker() == PRINT
    assert names(step.path) == ["success.fingerprint"]
    (step.path / "success.fingerprint").write_text(f"\n {PRINT}\t\n")
    assert step.marker() == PRINT
    step.write_marker("sha256:5678")
    assert step.marker() == "sha256:5678"


def test_a_marker_has_the_permissions_of_any_new_file(step: StepDir):
    """5.2: the ordinary umask applies, so a group may share a work root."""
    step.write_marker(PRINT)
    other = step.path / "other"
    other.touch()
    assert (step.path / "success.fingerprint").stat().st_mode == other.stat().st_mode


def test_deleting_a_marker_twice_is_harmless(step: StepDir):
    """Also for a step that never succeeded."""
    step.write_marker(PRINT)
    step.delete_marker()
    assert step.marker() is None
    step.delete_marker()


def test_a_leftover_temporary_file_is_written_over(step: StepDir):
    """A process that was killed may leave one."""
    (step.path / ".success.fingerprint.tmp").write_text("half")
    step.write_marker(PRINT)
    assert names(step.path) == ["success.fingerprint"]


def test_bytes_that_are_no_text_are_a_marker_of_no_success(step: StepDir):
    """A damaged marker runs the step again instead of stopping the plan for ever."""
    (step.path / "success.fingerprint").write_bytes(b"\xff\x00")
    assert step.marker() not in (None, PRINT)


@pytest.mark.parametrize("make", [Path.mkdir, loop], ids=["directory", "loop"])
@pytest.mark.parametrize(
    "use",
    [StepDir.marker, StepDir.delete_marker, lambda step: step.write_marker(PRINT)],
    ids=["read", "delete", "write"],
)
def test_a_marker_path_that_is_no_file_is_our_failure(
    step: StepDir, make: Callable[[Path], None], use: Callable[[StepDir], Any]
):
    """cases 44 and 45; nothing is left beside it."""
    marker = step.path / "success.fingerprint"
    make(marker)
    if make is loop and use is not StepDir.marker:
        use(step)
        assert not marker.is_symlink()
        return
    with pytest.raises(OrchestrationError, match=r"success\.fingerprint") as raised:
        use(step)
    assert raised.value.details == {"path": str(marker)}
    assert names(step.path) == ["success.fingerprint"]


def test_absolute_outputs_are_as_they_are_and_others_the_steps_own(step: StepDir):
    """5.7"""
    declared = {"a": "/abs/a.txt", "b": "sub/b.txt", "c": "./c", "d": "../d"}
    assert step.outputs(declared) == {
        "a": Path("/abs/a.txt"),
        "b": step.path / "sub" / "b.txt",
        "c": step.path / "c",
        "d": step.path / ".." / "d",
    }


def test_decoys_elsewhere_do_not_satisfy_a_relative_declaration(
    tmp_path: Path, step: StepDir, monkeypatch: pytest.MonkeyPatch
):
    """case 37: in the plan's folder, the root, another step and the process's own folder."""
    here = tmp_path / "here"
    other = step.path.parent / "other"
    for folder in (here, other, step.path.parent, step.path.parent.parent):
        folder.mkdir(exist_ok=True)
        (folder / "r.txt").touch()
    monkeypatch.chdir(here)
    assert step.missing_outputs({"report": "r.txt"}) == (str(step.path / "r.txt"),)


def test_each_step_is_asked_for_its_own_file(tmp_path: Path):
    """case 38: two steps declare the same name, and one forgets it."""
    work = WorkDir(tmp_path, "p")
    one, two = work.step("one"), work.step("two")
    one.create()
    (one.path / "r.txt").touch()
    assert one.missing_outputs({"r": "r.txt"}) == ()
    assert two.missing_outputs({"r": "r.txt"}) == (str(two.path / "r.txt"),)


def test_missing_outputs_are_named_by_path_in_order(step: StepDir):
    """case 36: what a warning shows."""
    (step.path / "there").touch()
    declared = {"z": "z.txt", "there": "there", "a": "/no/such/a.txt"}
    assert step.missing_outputs(declared) == (str(step.path / "z.txt"), "/no/such/a.txt")


def test_existence_is_all_that_counts(step: StepDir):
    """case 39: an empty directory is there; a dangling link and a missing parent are not."""
    (step.path / "empty").mkdir()
    (step.path / "file").touch()
    (step.path / "linked").symlink_to("file")
    (step.path / "dangling").symlink_to("nowhere")
    present = {name: name for name in ("empty", "file", "linked")}
    missing = {name: name for name in ("dangling", "no/parent", "file/below")}
    assert step.missing_outputs(present) == ()
    assert len(step.missing_outputs(missing)) == 3


def test_an_output_the_file_system_does_not_tell_of_is_our_failure(step: StepDir):
    """case 43: neither there nor missing, and the marker stays."""
    step.write_marker(PRINT)
    loop(step.path / "round")
    for path in ("round", "x" * 5000, "nul\0"):
        with pytest.raises(OrchestrationError, match="look for the output"):
            step.missing_outputs({"out": path})
    assert step.marker() == PRINT


def test_a_file_is_hashed_by_content(tmp_path: Path):
    """The same bytes are the same input, whatever their name and time."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"reads")
    two.write_bytes(b"reads")
    os.utime(two, (1, 1))
    assert hash_input(one) == hash_input(two) == {"sha256": sha256(b"reads").hexdigest()}
    two.write_bytes(b"other")
    assert hash_input(two) != hash_input(one)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with two files whose times are known."""
    path = tmp_path / "folder"
    (path / "sub").mkdir(parents=True)
    for name in ("b", "sub/a"):
        (path / name).write_bytes(b"12")
        os.utime(path / name, (1000, 1000))
    return path


def test_a_directory_is_hashed_by_names_sizes_and_whole_seconds(folder: Path):
    """5.3: path, size and mtime of each regular file, by path; not the content."""
    before = hash_input(folder)
    assert before == {"dirhash": sha256(b"b\x002\x001000\nsub/a\x002\x001000\n").hexdigest()}
    (folder / "b").write_bytes(b"34")
    os.utime(folder / "b", ns=(0, 1000 * 10**9 + 999_999_999))
    (folder / "empty").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    assert hash_input(folder) == before


@pytest.mark.parametrize("change", ["size", "time", "name", "more", "fewer"])
def test_a_directory_that_changed_has_another_hash(folder: Path, change: str):
    """Each of the three counts, and every file."""
    before = hash_input(folder)
    if change == "size":
        (folder / "b").write_bytes(b"123")
        os.utime(folder / "b", (1000, 1000))
    elif change == "time":
        os.utime(folder / "sub" / "a", (1000, 1001))
    elif change == "name":
        (folder / "b").rename(folder / "c")
    elif change == "more":
        (folder / "sub" / "c").touch()
    else:
        (folder / "b").unlink()
    assert hash_input(folder) != before


def test_neither_file_nor_directory_is_missing(tmp_path: Path):
    """A pipe is not read: nobody knows when it would end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("pipe", "none", "dangling", "file/below"):
        assert hash_input(tmp_path / name) == {"missing": True}
        assert digest(tmp_path / name) is None


def test_an_artifacts_digest_says_what_it_is_of(tmp_path: Path, folder: Path):
    """1.4"""
    file = tmp_path / "file"
    file.write_bytes(b"x")
    assert digest(file) == f"sha256:{sha256(b'x').hexdigest()}"
    assert digest(folder) == f"dirhash:{hash_input(folder)['dirhash']}"


def spec(**fields: Any) -> StepSpec:
    return StepSpec("qc", "QC", "m:f", **fields)


def function(ctx: Any, reads: Any = None) -> None:
    """A step that annotates nothing."""


def test_inputs_are_hashed_by_key_from_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """5.3: paths as given, relative ones not in the work directory."""
    (tmp_path / "reads").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    inputs = {"here": "reads", "there": str(tmp_path / "reads"), "gone": "gone"}
    hashed = hash_inputs(spec(inputs=inputs), function)
    assert hashed["here"] == hashed["there"] == {"sha256": sha256(b"x").hexdigest()}
    assert hashed["gone"] == {"missing": True}


def test_what_fails_in_hashing_is_an_ordinary_exception(tmp_path: Path):
    """case 46: the plan's paths are the realm's own, so this is that step's failure."""
    loop(tmp_path / "round")
    for inputs in ({"a": str(tmp_path / "round")}, {"a": "nul\0"}, {"a": 7}, ["a"]):
        with pytest.raises((OSError, ValueError, TypeError)) as raised:
            hash_inputs(spec(inputs=inputs), function)
        assert not isinstance(raised.value, OrchestrationError)


def test_a_path_that_cannot_be_is_told_with_its_input() -> None:
    with pytest.raises(ValueError, match="input 'reads': "):
        hash_inputs(spec(inputs={"reads": "nul\0"}), function)
