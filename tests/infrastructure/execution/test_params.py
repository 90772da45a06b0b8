"""From planned params to arguments: variables, paths, inputs (5.2, 5.3, D17, D22)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest

from statelog.domain.execution.spec import StepSpec
from statelog.domain.execution.step import In, Out, PermanentStepError, StepContext, step
from statelog.infrastructure.execution.params import coerced, input_paths, resolved_env

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]


@step
def work(
    ctx: StepContext,
    plain: Path,
    optional: Path | None = None,
    older: Optional[Path] = None,  # noqa: UP045
    reads: Annotated[Path, In] = Path("default.fq"),
    inner: Annotated[Path | None, In] = None,
    outer: Annotated[Path, In] | None = None,
    report: Annotated[Path, Out] = Path(),
    text: str = "",
    either: str | Path = "",
    many: list[Path] = [],  # noqa: B006
    odd: Unknown = None,
    bare=None,  # type: ignore[no-untyped-def]
) -> None: ...


PATHS = ("plain", "optional", "older", "reads", "inner", "outer", "report")
OTHERS = ("text", "either", "odd", "bare", "not_a_parameter")


@pytest.mark.parametrize("name", PATHS)
def test_a_string_becomes_a_path_where_one_is_declared(name: str):
    """5.2: plain, optional and annotated, also with annotations kept as text."""
    assert coerced(work, {name: "a/b"}) == {name: Path("a/b")}


@pytest.mark.parametrize("name", OTHERS)
def test_other_strings_stay(name: str):
    """An annotation that cannot be evaluated spoils only itself."""
    value = coerced(work, {name: "a/b"})[name]
    assert type(value) is str


@pytest.mark.parametrize("value", [None, 7, ["a"], {"a": "b"}], ids=repr)
def test_only_strings_are_coerced(value: Any):
    """Types are not checked."""
    assert coerced(work, {"plain": value, "many": value}) == {"plain": value, "many": value}


def test_a_function_without_a_signature_is_left_alone():
    """case 32: it may still be a step."""
    assert coerced(dict.__init__, {"a": "b"}) == {"a": "b"}
    assert coerced(type, {"a": "b"}) == {"a": "b"}


def test_a_variable_is_seen_by_the_step_only():
    """case 142: what is resolved is a copy; the plan keeps the reference."""
    params = {"key": {"$env": "KEY"}, "deep": [{"auth": {"$env": "KEY"}}], "n": 1}
    before = json.dumps(params)
    resolved = resolved_env(params, {"KEY": "s3cret"})
    assert resolved == {"key": "s3cret", "deep": [{"auth": "s3cret"}], "n": 1}
    assert json.dumps(params) == before


def test_only_exactly_that_key_is_a_reference():
    """D17: everything else is a value that happens to look like it."""
    params = {"a": {"$env": "X", "b": 1}, "b": {"$env": 7}, "c": "$env", "d": {"env": "X"}}
    assert resolved_env(params, {"X": "no"}) == params


def test_a_variable_that_is_not_set_is_the_steps_failure():
    """D17: permanent, with its code and the name; an empty variable is set."""
    with pytest.raises(PermanentStepError, match="NOT_THERE") as raised:
        resolved_env({"a": [{"$env": "NOT_THERE"}]}, {})
    assert raised.value.code == "missing_env"
    assert resolved_env({"a": {"$env": "EMPTY"}}, {"EMPTY": ""}) == {"a": ""}


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch):
    """As it is when the step runs."""
    monkeypatch.setenv("STATELOG_TEST_VARIABLE", "now")
    assert resolved_env({"a": {"$env": "STATELOG_TEST_VARIABLE"}}) == {"a": "now"}


def planned(params: dict[str, Any], inputs: Any = None) -> StepSpec:
    return StepSpec("s", "S", "m:f", params=params, inputs=inputs or {})


def test_declared_inputs_win():
    """5.3: annotations count only when the spec names none."""
    assert input_paths(planned({"reads": "a.fq"}, {"x": "x.fq"}), work) == {"x": "x.fq"}


def test_annotated_arguments_are_the_inputs_otherwise():
    """Strings only, in each form of the annotation; `Out` and plain paths are none."""
    given = {"plain": "p", "reads": "a.fq", "inner": "b.fq", "outer": "c.fq", "report": "r"}
    expected = {"reads": "a.fq", "inner": "b.fq", "outer": "c.fq"}
    assert input_paths(planned(given), work) == expected


def test_a_default_that_is_a_path_is_an_input_too():
    """It is what the function will read."""
    assert input_paths(planned({"plain": "p"}), work) == {"reads": Path("default.fq")}


@pytest.mark.parametrize("value", [None, 7, ["a"], {"$env": "READS"}], ids=repr)
def test_what_is_no_path_is_not_hashed(value: Any):
    """5.3: string or path values only."""
    assert input_paths(planned({"reads": value}), work) == {}


def test_a_malformed_declaration_is_an_ordinary_error():
    """Preflight does not look at inputs, so it is that step's failure."""
    for wrong in (["a"], {"a": 1}, {"a": None}):
        with pytest.raises(TypeError, match="input"):
            input_paths(planned({}, wrong), work)
