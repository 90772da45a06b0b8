"""Plan files and `--param`: what is read, and how every defect is told (1.3, D21)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from statelog.domain.errors import Invalid
from statelog.infrastructure.documents import YAML_LIMIT
from statelog.infrastructure.execution.planfile import read_plan, with_params

STEP = {"step_id": "qc.1", "name": "QC", "fn_ref": "m:f", "params": {"threads": 4, "in": "a.fq"}}
BODY: dict[str, Any] = {
    "plan_id": "p",
    "realm": "lab",
    "scope": {"kind": "run", "big": 2**64 - 1, "low": -(2**63), "x": None},
    "steps": [STEP, {**STEP, "step_id": "b", "deps": ["qc.1"]}],
}


def refused(path: Path, text: str | bytes) -> str:
    """The message of a file with this text, which names the file once and has one line."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Invalid) as raised:
        read_plan(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert message.count(str(path)) == 1
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


@pytest.fixture
def yaml_file(tmp_path: Path) -> Path:
    return tmp_path / "plan.yaml"


def scoped(value: str) -> str:
    """A plan with this JSON text below `scope`."""
    return f'{{"plan_id": "p", "realm": "lab", "scope": {{"x": {value}}}}}'


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_a_json_plan_is_read_as_it_is(file: Path, prefix: bytes):
    """Nothing is added, dropped or converted."""
    file.write_bytes(prefix + json.dumps(BODY).encode())
    assert read_plan(file) == BODY


@pytest.mark.parametrize("name", ["plan.yaml", "plan.YML"])
def test_a_yaml_plan_is_the_same_plan(tmp_path: Path, name: str):
    """JSON's types, whatever the spelling."""
    file = tmp_path / name
    file.write_text(yaml.safe_dump(json.loads(json.dumps(BODY))), "utf-8")
    assert read_plan(file) == BODY
    file.write_text(json.dumps(BODY), "utf-8")
    assert read_plan(file) == BODY


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    """A missing one, and a directory."""
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(Invalid, match="cannot be read") as raised:
            read_plan(path)
        assert raised.value.field == str(path)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"", "line 1, column 1: is not JSON"),
        (b'{"plan_id": "p"', "line 1, column 16: is not JSON"),
        (b'{\n  "plan_id": p}', "line 2, column 14: is not JSON"),
        (b'{"plan_id": "p"} {}', "line 1, column 18: is not JSON"),
        (b'{\n  "plan_id": "\xff"}', "line 2, column 15: is not UTF-8"),
        (b"[]", "plan: must be a mapping"),
        (b"null", "plan: must be a mapping"),
        (b"{}", "plan.plan_id: is required"),
        (b'{"plan_id": "p", "realm": "r", "stepz": []}', "plan.stepz: is not a known key"),
        (b'{"plan_id": "p", "realm": "r", "steps": {}}', "plan.steps: must be a list"),
        (b'{"plan_id": "p", "realm": "r", "steps": [0]}', "plan.steps[0]: must be a mapping"),
        (
            b'{"plan_id": "p", "realm": "r", "steps": [{"step_id": "s"}]}',
            "plan.steps[0].name: is required",
        ),
        (
            b'{"plan_id": "p", "realm": "r", "steps": [{"step_id": "s", "name": "", '
            b'"fn_ref": "", "params": []}]}',
            "plan.steps[0].params: must be a mapping",
        ),
        (b'{"plan_id": "p", "plan_id": "q"}', "plan.plan_id: appears twice"),
    ],
)
def test_each_defect_of_a_json_file_is_told_with_its_place(file: Path, text: bytes, place: str):
    """Line and column where JSON gives them, else the path of keys."""
    assert refused(file, text).startswith(place)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("[1, NaN]", "plan.scope.x[1]: is nan"),
        ("-Infinity", "plan.scope.x: is -inf"),
        ("1e999", "plan.scope.x: is inf"),
        (str(2**64), "plan.scope.x: is an integer beyond 64 bits"),
        (str(-(2**63) - 1), "plan.scope.x: is an integer beyond 64 bits"),
        ("9" * 10_000, "plan.scope.x: is an integer beyond 64 bits"),
        (f"-{'9' * 10_000}", "plan.scope.x: is an integer beyond 64 bits"),
        (r'"\ud800"', "plan.scope.x: has a lone surrogate"),
        (r'{"\udc00": 1}', "plan.scope.x"),
        ('[{"a": {"b": 1, "b": 2}}]', "plan.scope.x[0].a.b: appears twice"),
        ("[" * 250 + "]" * 250, "plan.scope.x[0][0]"),
        ("[" * 200_000 + "]" * 200_000, "plan: is nested too deeply"),
    ],
    ids=lambda value: value[:20],
)
def test_values_that_cannot_be_stored_are_refused_by_key(file: Path, value: str, place: str):
    """D21: what an event could not hold is refused before anything is saved."""
    assert refused(file, scoped(value)).startswith(place)


def test_a_surrogate_pair_is_an_ordinary_character(file: Path):
    """Only lone ones are refused."""
    file.write_text(scoped(r'"\ud83e\uddec"'))
    assert read_plan(file)["scope"] == {"x": "\U0001f9ec"}


def test_what_preflight_knows_is_not_refused_here(file: Path):
    """Such a plan is saved, and rejected by its attempt."""
    odd = {**STEP, "step_id": 7, "deps": None, "outputs": [], "fn_ref": None}
    body = {**BODY, "steps": [odd, odd], "failure_policy": "best_effort"}
    file.write_text(json.dumps(body))
    assert read_plan(file) == body


HEAD = "plan_id: p\nrealm: lab\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"{HEAD}scope: {{x: 1, x: 2}}", "line 3, column 15: the key 'x' appears twice"),
        (f"{HEAD}scope: {{1: x}}", "line 3, column 9: the key is not a string"),
        (f"{HEAD}scope: {{yes: x}}", "line 3, column 9: the key is not a string"),
        (f"{HEAD}scope: {{[a]: x}}", "line 3, column 9: the key is not a string"),
        (f"{HEAD}scope: {{<<: {{a: 1}}}}", "line 3, column 9: the key is not a string"),
        (f"{HEAD}scope: {{x: 2025-01-01}}", "line 3, column 12: has the type 'timestamp'"),
        (f"{HEAD}scope: {{x: !!binary aGk=}}", "line 3, column 12: has the type 'binary'"),
        (f"{HEAD}scope: {{x: !!set {{a}}}}", "line 3, column 12: has the type 'set'"),
        (
            f"{HEAD}scope: {{x: !!python/object/apply:os.getcwd []}}",
            "line 3, column 12: has the type 'python/object/apply:os.getcwd'",
        ),
        (f"{HEAD}scope: {{x: !own y}}", "line 3, column 12: has the type '!own'"),
        (f"{HEAD}scope: {{x: !!int y}}", "line 3, column 12: 'y' is no int"),
        ("plan_id: &a p\nrealm: *a", "line 2, column 8: aliases are not allowed"),
        (f"{HEAD}scope: {{x: .nan}}", "plan.scope.x: is nan"),
        (f"{HEAD}scope: {{x: {2**64}}}", "plan.scope.x: is an integer beyond 64 bits"),
        (f"{HEAD}scope: {{x: {'9' * 9000}}}", "line 3, column 12: "),
        (f"{HEAD}scope: [", "line 4, column 1: is not YAML"),
        (f"{HEAD}---\nb: 1", "line 3, column 1: is not YAML"),
        (f"{HEAD}scope: \x07", "line 3, column 8: is not YAML"),
        (f"{HEAD}scope: {{x: {'[' * 220}{']' * 220}}}", "line 3, column 2"),
        (f"{HEAD}scope: {{x: {'[' * 100_000}", "line 3, column "),
        ("", "plan: must be a mapping, not null"),
        ("- a", "plan: must be a mapping, not a list"),
    ],
    ids=lambda value: repr(value[:40]),
)
def test_each_defect_of_a_yaml_file_is_told_with_its_place(yaml_file: Path, text: str, place: str):
    """JSON's types only; nothing is constructed and nothing is repeated."""
    assert place in refused(yaml_file, text)


def test_a_yaml_file_has_a_limit(yaml_file: Path):
    """1 MiB: a bomb is not even parsed."""
    text = f"{HEAD}#".encode()
    yaml_file.write_bytes(text + b"x" * (YAML_LIMIT - len(text)))
    assert read_plan(yaml_file)["plan_id"] == "p"
    assert "1048576 bytes" in refused(yaml_file, text + b"x" * (YAML_LIMIT - len(text) + 1))


def test_without_the_extra_the_error_names_the_install_command(yaml_file: Path):
    """In a process that has no PyYAML; JSON plans need none."""
    yaml_file.write_text(HEAD)
    json_file = yaml_file.with_suffix(".json")
    json_file.write_text(json.dumps(BODY))
    code = f"""
        import sys
        from pathlib import Path
        sys.modules["yaml"] = None
        from statelog.domain.errors import Invalid
        from statelog.infrastructure.execution.planfile import read_plan
        read_plan(Path({str(json_file)!r}))
        try:
            read_plan(Path({str(yaml_file)!r}))
        except Invalid as error:
            print(error)
        """
    done = subprocess.run(
        [sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True
    )
    assert "pip install 'statelog[yaml]'" in done.stdout
    assert str(yaml_file) in done.stdout


def param(setting: str) -> Any:
    """The params of the step `qc.1` after one setting."""
    return with_params(BODY, [setting])["steps"][0]["params"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ('"8"', "8"),
        ("null", None),
        ('{"a": [1.5, true]}', {"a": [1.5, True]}),
        ("reads.fq", "reads.fq"),
        ("a=b.c=d", "a=b.c=d"),
        ("", ""),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("007", "007"),
        ("[1,", "[1,"),
    ],
)
def test_a_value_is_json_if_it_parses_else_text(text: str, value: Any):
    """Split at the first `=`; before it at the last `.`, for step ids may have dots."""
    assert param(f"qc.1.threads={text}") == {"threads": value, "in": "a.fq"}


def test_settings_apply_in_order_and_the_plan_stays_as_it_was():
    """The last one wins, and other steps keep theirs."""
    before = json.dumps(BODY)
    body = with_params(BODY, ["qc.1.threads=1", "b.in=b.fq", "qc.1.threads=2"])
    assert [step["params"] for step in body["steps"]] == [
        {"threads": 2, "in": "a.fq"},
        {"threads": 4, "in": "b.fq"},
    ]
    assert json.dumps(BODY) == before
    assert with_params(BODY, []) == BODY


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("qc.1.threads", "is not STEP.KEY=VALUE"),
        ("threads=1", "is not STEP.KEY=VALUE"),
        (".threads=1", "is not STEP.KEY=VALUE"),
        ("qc.1.=1", "is not STEP.KEY=VALUE"),
        ("=1", "is not STEP.KEY=VALUE"),
        ("qc.threads=1", "there is no step 'qc'"),
        ("qc.1.thread=1", "has no param 'thread' (it has threads, in)"),
        (f"b.in={2**64}", "value is an integer beyond 64 bits"),
        ("b.in=[1e999]", "value[0] is inf"),
        ('b.in={"a": 1, "a": 2}', "value.a appears twice"),
        ("b.in=\udcff", "value has a lone surrogate"),
        (f"b.in={'[' * 100_000}", "is nested too deeply"),
    ],
    ids=lambda value: ascii(value[:30]),
)
def test_a_setting_that_fits_nowhere_is_wrong_usage(setting: str, message: str):
    """An unknown step or key is an error, never a new param."""
    with pytest.raises(Invalid) as raised:
        with_params(BODY, [setting])
    assert raised.value.field == "--param"
    assert message in raised.value.why
    assert len(raised.value.why) < 250
