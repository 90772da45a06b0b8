"""Plan files, options and stores that cannot be used: one line, the right code, no damage."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.cli.desk import Desk, a_step

STEP = a_step("a.b", params={"n": 1})
BODY: dict[str, Any] = {"plan_id": "p", "realm": "lab", "steps": [STEP]}


def without(key: str) -> str:
    return json.dumps({k: v for k, v in BODY.items() if k != key})


def with_step(**fields: Any) -> str:
    step = {k: v for k, v in {**STEP, **fields}.items() if v is not ...}
    return json.dumps({**BODY, "steps": [step]})


WRONG = {
    "not JSON": ('{"plan_id": "p",\n "realm" "lab"}', "line 2, column 10"),
    "duplicate keys": ('{"plan_id": "p", "realm": "a", "realm": "b"}', "plan.realm"),
    "duplicate keys below": (
        '{"plan_id": "p", "realm": "a", "scope": {"x": 1, "x": 2}}',
        "scope.x",
    ),
    "NaN": ('{"plan_id": "p", "realm": "a", "scope": {"x": NaN}}', "scope.x"),
    "infinity": (with_step(params={"n": float("inf")}), "params.n"),
    "too large": (with_step(params={"n": 2**64}), "params.n"),
    "unknown key": (json.dumps({**BODY, "step": []}), "step"),
    "unknown key of a step": (with_step(dep=["x"]), "dep"),
    "a list": ("[]", "plan"),
    "a step that is text": (json.dumps({**BODY, "steps": ["a"]}), "steps[0]"),
    "steps that are none": (json.dumps({**BODY, "steps": {"a": 1}}), "steps"),
    "params that are a list": (with_step(params=[1]), "params"),
    "no plan_id": (without("plan_id"), "plan_id"),
    "no realm": (without("realm"), "realm"),
    "no step_id": (with_step(step_id=...), "step_id"),
    "no fn_ref": (with_step(fn_ref=...), "fn_ref"),
    "no name": (with_step(name=...), "name"),
    "no params": (with_step(params=...), "params"),
    "a plan id that is no path part": (json.dumps({**BODY, "plan_id": "a/b"}), "plan_id"),
    "a realm that is no path part": (json.dumps({**BODY, "realm": ".."}), "realm"),
    "a plan id that is a number": (json.dumps({**BODY, "plan_id": 7}), "plan_id"),
    "empty": ("", "line 1, column 1"),
}


@pytest.mark.parametrize("command", [("run",), ("plan", "save")], ids=["run", "save"])
@pytest.mark.parametrize(("text", "place"), WRONG.values(), ids=WRONG)
def test_a_plan_file_that_cannot_be_used(desk: Desk, command: Any, text: str, place: str):
    """Exit 2, the place is named, and nothing is saved: not even a store."""
    path = desk.file(text)
    done = desk(*command, path)
    assert done.code == 2
    assert done.error.startswith(f"{path}: ")
    assert place in done.error
    assert done.out == ""
    assert desk.files == {"plan.json", "steps.py"}


def test_a_plan_file_that_cannot_be_read(desk: Desk):
    """Missing, a folder, not text."""
    (desk.folder / "raw.json").write_bytes(b'{"plan_id": "\xff"}')
    for name, why in (("none.json", "No such file"), (".", "directory"), ("raw.json", "UTF-8")):
        done = desk("run", desk.folder / name)
        assert done.code == 2
        assert why in done.error


def test_a_plan_file_that_the_system_refuses(desk: Desk):
    """The system's word, and no traceback, also for root, who has every permission."""
    path = desk.plan(a_step("a"))
    path.chmod(0)
    for refused in (path, Path("/proc/self/mem")):
        if os.geteuid() == 0 and refused is path:
            continue
        done = desk("run", refused)
        assert (done.code, "cannot be read" in done.error) == (2, True)


def test_yaml_without_the_extra_names_the_command(desk: Desk):
    """Exit 2 with what to install."""
    desk.file("plan_id: p\nrealm: lab\n", "plan.yaml")
    desk.file("raise ImportError('no yaml here')", "yaml.py")
    done = desk.process("run", "plan.yaml", env={"PYTHONPATH": str(desk.folder)})
    assert done.code == 2
    assert "pip install 'statelog[yaml]'" in done.error
    assert "s.db" not in desk.files


def test_a_yaml_plan_runs(desk: Desk):
    """With the extra it is the same plan."""
    text = (
        "plan_id: p\nrealm: lab\nsteps:\n- {step_id: a, name: A, fn_ref: 'steps:ok', params: {}}\n"
    )
    assert desk("run", desk.file(text, "plan.yaml")).code == 0


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([a_step("")], "P2"),
        ([a_step("a"), a_step("a")], "P4"),
        ([a_step(7)], "P1"),
        ([a_step("a", "none")], "P15"),
        ([a_step("a", "write", params={"nothing": 1})], "P20"),
        ([a_step("a", outputs=["x"])], "P10"),
        ([a_step("a", "ok", "b"), a_step("b", "ok", "a")], "P8"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_preflight_knows_is_saved_and_rejected(desk: Desk, steps: Any, says: str):
    """Exit 1, a report, and a plan to look at."""
    done = desk("run", desk.plan(*steps), "--json")
    assert done.code == 1, says
    assert done.json["termination_reason"] == "preflight_rejected"
    assert done.json["report"]["diagnostic"]["message"]
    assert desk("plan", "show", "p").code == 0


def test_params_are_json_or_text(desk: Desk):
    """Split at the first `=`, before it at the last `.`."""
    plan = desk.plan(a_step("a.b", params={"x": 1, "y": 2, "z": 3, "w": 4}))
    given = ["a.b.x=[1, 2]", "a.b.y=a=b", "a.b.z=NaN", 'a.b.w="7"']
    done = desk("run", plan, *(word for each in given for word in ("--param", each)))
    assert done.code == 0
    (step,) = desk("plan", "show", "p", "--json").json["plan"]["steps"]
    assert step["params"] == {"x": [1, 2], "y": "a=b", "z": "NaN", "w": "7"}


@pytest.mark.parametrize("command", [("run",), ("plan", "save")], ids=["run", "save"])
@pytest.mark.parametrize("setting", ["nothing", "a.b", "=1", "a.b.n", "b.n=1", "a.b.m=1", "n=1"])
def test_a_param_that_is_none(desk: Desk, command: Any, setting: str):
    """Exit 2, and nothing is saved."""
    done = desk(*command, desk.plan(STEP), "--param", setting)
    assert done.code == 2
    assert "--param" in done.error
    assert "s.db" not in desk.files


def test_wrong_usage_is_one_line_and_exit_2(desk: Desk):
    """Also as JSON on stdout when that was asked for."""
    for words in (
        *(["nonsense"], ["run"], ["run", "a", "b"], ["plan", "save", "x", "--rev", "z"]),
        *(["plan", "list", "--no-such"], ["lifecycle", "none"], ["log", "history"]),
    ):
        done = desk(*words)
        assert (done.code, done.out) == (2, "")
        assert done.error
        told = desk(*words, "--json")
        assert told.code == 2
        assert told.json["error"]["message"] == told.error


READING = [
    *(["plan", "list"], ["plan", "show", "p"], ["plan", "status", "p"], ["plan", "attempts", "p"]),
    *(["plan", "explain", "p", "a"], ["log", "history", "p"], ["log", "refusals"]),
    *(["views", "list"], ["views", "verify"], ["store", "doctor"]),
]
CHANGING = [["plan", name, "p"] for name in ("approve", "draft", "request", "touch", "adopt")]
words = pytest.mark.parametrize("words", READING + CHANGING, ids=" ".join)
reading = pytest.mark.parametrize("words", READING, ids=" ".join)


@words
def test_a_store_that_is_not_there(desk: Desk, words: list[str]):
    """Exit 1, how to make one, and none is made; the same for an empty file."""
    for name in ("s.db", "empty.db"):
        done = desk(*words, store=desk.folder / name)
        assert done.code == 1
        assert "no store" in done.error
        assert "--store" in done.error
        assert desk.files <= {"steps.py", "empty.db"}
        desk.file("", "empty.db")
    told = desk(*words, "--json").json["error"]
    assert (told["type"], told["kind"]) == ("NotFound", "store")


@words
@pytest.mark.parametrize("kind", ["text", "sqlite", "newer", "link", "folder"])
def test_a_store_that_is_not_ours(desk: Desk, words: list[str], kind: str):
    """Exit 1, the file is named and left byte for byte, and nothing is made beside it."""
    path = desk.folder / "other.db"
    if kind == "text":
        path.write_text("hello " * 2000)
    elif kind in ("sqlite", "newer"):
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE t (x)")
            if kind == "newer":
                db.execute(f"PRAGMA application_id = {0x53746C67}")
                db.execute("PRAGMA user_version = 99")
    elif kind == "link":
        (desk.folder / "target.db").write_text("x")
        path.symlink_to("target.db")
    else:
        path.mkdir()
    before = path.read_bytes() if path.is_file() else b""
    done = desk(*words, store=path)
    assert done.code == 1
    assert str(path) in done.error
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert {name for name in desk.files if name.startswith("other.db")} == {"other.db"}


@contextmanager
def only_read(folder: Path) -> Iterator[None]:
    """Nothing in a folder can be written."""
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (*folder.rglob("*"), folder)}
    try:
        for path in modes:
            path.chmod(0o500 if path.is_dir() else 0o400)
        yield
    finally:
        for path in reversed(modes):
            path.chmod(modes[path])


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk where a plan was run, for reading only."""
    desk = Desk(tmp_path_factory.mktemp("ran"))
    desk("run", desk.plan(a_step("a")))
    return desk


@reading
def test_a_read_only_store_is_read(ran: Desk, words: list[str]):
    """The same answer as of a store that can be written, and nothing is made."""
    open_store = ran(*words).code, ran(*words, "--json").out
    with only_read(ran.folder):
        before = {path: path.stat().st_mtime_ns for path in ran.folder.rglob("*")}
        done = ran(*words)
        told = ran(*words, "--json").out
        assert {path: path.stat().st_mtime_ns for path in ran.folder.rglob("*")} == before
    assert done.code == open_store[0] == 0
    if words[0] != "store":
        assert told == open_store[1]
    else:
        views = [json.loads(text)["views"] for text in (told, open_store[1])]
        assert views[0] == views[1] != []


@pytest.mark.parametrize("words", [*CHANGING, ["run", "plan.json"], ["views", "rebuild"]])
def test_a_read_only_store_is_not_changed(desk: Desk, words: list[str]):
    """Exit 1 and why."""
    desk("run", desk.plan(a_step("a")))
    before = desk.store.read_bytes()
    with only_read(desk.folder):
        done = desk(*words)
    if words[1] not in ("approve", "adopt", "draft") or done.code:
        assert done.code == 1
        assert "cannot be written" in done.error or "cannot hold" in done.error
    assert desk.store.read_bytes() == before


@pytest.mark.parametrize("rest", [["\udcff"], ["."], ["a/b"], ["x" * 256], [""]])
@pytest.mark.parametrize("name", ["show", "status", "attempts", "approve", "delete"])
def test_an_id_that_no_plan_can_have(ran: Desk, name: str, rest: list[str]):
    """Exit 2 naming the field."""
    done = ran("plan", name, *rest)
    assert done.code == 2
    assert "plan_id" in done.error


def test_unknown_things_are_named(ran: Desk):
    """Exit 1, what is missing, and where to look."""
    for words_, hint in (
        (["plan", "show", "q"], "plan list"),
        (["plan", "status", "q"], "plan list"),
        (["plan", "approve", "q"], "plan list"),
        (["plan", "attempts", "q"], "plan list"),
        (["plan", "explain", "q", "a"], "plan list"),
        (["plan", "explain", "p", "z"], "plan status"),
        (["plan", "explain", "p", "a", "--attempt", "z"], "plan attempts"),
        (["plan", "status", "p", "--attempt", "z"], "plan attempts"),
        (["views", "verify", "z"], "views list"),
        (["log", "history", "q"], "plan/q"),
    ):
        done = ran(*words_)
        assert done.code == 1
        assert hint in done.error
        assert ran(*words_, "--json").json["error"]["type"] == "NotFound"


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_a_timeout_is_a_number_of_seconds(desk: Desk, seconds: str):
    done = desk("run", desk.file(json.dumps(BODY)), "--timeout", seconds)
    assert done.code == 2
    assert "--timeout" in done.error
    assert not desk.store.exists()
