"""Preflight: which plans are rejected, which abort, in which order (4.4)."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.execution.preflight import (
    UNKNOWN_POLICY,
    Aborted,
    Accepted,
    Rejected,
    Resolved,
    Unresolved,
    preflight,
)
from statelog.domain.execution.spec import PlanSpec, StepSpec
from statelog.domain.execution.step import In, Out, StepContext, StepResult, step


@step
def fine(ctx: StepContext) -> None:
    raise AssertionError("preflight calls no step")


@step
def typed(
    ctx: StepContext,
    reads: Annotated[Path, In],
    report: Annotated[Path, Out],
    depth: int = 3,
) -> StepResult | None:
    raise AssertionError("preflight calls no step")


@step
def anything(ctx: StepContext, **params: Any) -> None:
    raise AssertionError("preflight calls no step")


@step
def by_position(ctx: StepContext, reads: str, /) -> None: ...


@step
def no_context() -> None: ...


@step
def only_named(*, ctx: StepContext) -> None: ...


def unmarked(ctx: StepContext) -> None: ...


class Metadata:
    __statelog_step__ = True


@step
class Opaque:
    """Called like a function, and nobody can look at its signature."""

    @property
    def __signature__(self) -> Any:
        raise RuntimeError("not for your eyes")

    def __call__(self, *args: Any, **params: Any) -> None:
        raise AssertionError("preflight calls no step")


@step
@functools.wraps(typed)
def wrapped(*args: Any, **params: Any) -> None: ...


NAMES: dict[str, Any] = {
    **{each.__name__: each for each in (fine, typed, anything, by_position, no_context)},
    **{each.__name__: each for each in (only_named, unmarked)},
    "wrapped": wrapped,
    "metadata": Metadata(),
    "number": 7,
    "opaque": Opaque(),
}


def failing(error: Exception, *, loaded: bool = False) -> Callable[[str, str], Unresolved]:
    return lambda module, attribute: Unresolved(error, module_loaded=loaded)


def known(module: str, attribute: str) -> Resolved | Unresolved:
    if module != "lib.steps":
        return Unresolved(ModuleNotFoundError(name=module), module_loaded=False)
    if attribute not in NAMES:
        return Unresolved(AttributeError(attribute), module_loaded=True)
    return Resolved(NAMES[attribute])


def one(step_id: Any = "a", fn_ref: Any = "lib.steps:fine", **given_fields: Any) -> StepSpec:
    fields: dict[str, Any] = {"params": {}, **given_fields}
    return StepSpec(step_id=step_id, name="x", fn_ref=fn_ref, **fields)


def check(
    *steps: StepSpec, policy: Any = "fail_fast", resolve: Any = known
) -> Accepted | Rejected | Aborted:
    return preflight(PlanSpec("p", "r", steps=steps, failure_policy=policy), resolve)


def rejected(*steps: StepSpec, resolve: Any = known, policy: Any = "fail_fast") -> Rejected:
    found = check(*steps, policy=policy, resolve=resolve)
    assert isinstance(found, Rejected)
    return found


def aborted(*steps: StepSpec, resolve: Any = known, policy: Any = "fail_fast") -> Aborted:
    found = check(*steps, policy=policy, resolve=resolve)
    assert isinstance(found, Aborted)
    return found


def ids(step_ids: Iterable[Any]) -> Accepted | Rejected | Aborted:
    return check(*(one(step_id) for step_id in step_ids))


def test_a_sound_plan_is_accepted_with_the_function_of_each_step():
    found = check(one("a"), one("b", "lib.steps.anything", params={"x": 1}, deps=["a"]))
    assert found == Accepted({"a": fine, "b": anything})


def test_an_empty_plan_is_valid():
    assert check() == Accepted({})


def test_each_function_is_resolved_exactly_once_and_only_when_all_else_holds():
    asked: list[tuple[str, str]] = []

    def resolve(module: str, attribute: str) -> Resolved | Unresolved:
        asked.append((module, attribute))
        return known(module, attribute)

    check(one("a"), one("b", "lib.steps:anything"), one("c"), resolve=resolve)
    assert asked == [("lib.steps", "fine"), ("lib.steps", "anything"), ("lib.steps", "fine")]
    asked.clear()
    check(one("a"), one("b", deps=["nowhere"]), resolve=resolve)
    check(one("a"), policy="sometimes", resolve=resolve)
    assert asked == []


def test_an_empty_id_is_named_by_its_position():
    """Case 19."""
    found = ids(["ok", ""])
    assert isinstance(found, Rejected)
    assert (found.check, found.step_id) == ("P2", None)
    assert "position 1" in found.message


@pytest.mark.parametrize(
    ("step_id", "kind"),
    [(7, "number"), (None, "null"), ([], "list"), ({}, "mapping"), (True, "bool")],
)
def test_an_id_that_is_no_string_is_rejected(step_id: Any, kind: str):
    """Case 20."""
    found = ids(["ok", step_id])
    assert isinstance(found, Rejected)
    assert (found.check, found.step_id) == ("P1", None)
    assert "position 1" in found.message
    assert kind in found.message


@pytest.mark.parametrize(
    "step_id",
    ["/a", "/", "a\0b", "a//b", "a/", ".", "..", "./a", "a/../b", "a/.", "a/..", "//"],
)
def test_an_id_that_leaves_its_place_is_rejected(step_id: str):
    assert rejected(one(step_id)).check == "P3"


def test_an_absolute_id_is_called_that():
    assert "starts with /" in rejected(one("/a")).message


@pytest.mark.parametrize(
    "step_id",
    [
        *("x" * 256, "a/" + "x" * 256 + "/b", "\u00e9" * 128),
        *("\ud800", "a/b\udfff"),
        *("plan.json", "success.fingerprint", "a/success.fingerprint", "a/plan.json/b"),
    ],
)
def test_a_part_that_cannot_be_a_directory_of_its_own_is_rejected(step_id: str):
    """P3b (D5): too long, not encodable, or a file of the engine."""
    found = rejected(one(step_id))
    assert found.check == "P3b"
    found.message.encode("utf-8")


@pytest.mark.parametrize(
    "step_id",
    [
        *("lane_1/process", "1.lane", "a%b", "..lane", "lane..", " spaced ", "lane\\process"),
        *("lane/0001_step_started.json", "a.json", "a/b.json.tmp", "...", "a/...", "-", "\n"),
        *("x" * 255, "\u00e9" * 127, ("x" * 255 + "/") * 3 + "x"),
        *("plan.json.bak", "Plan.json", "plan_json/x", "a/success_fingerprint"),
    ],
)
def test_an_odd_id_is_accepted_as_it_is(step_id: str):
    """Case 22."""
    assert check(one(step_id)) == Accepted({step_id: fine})


def test_a_repeated_id_is_rejected():
    """Case 23."""
    found = rejected(one("a"), one("b"), one("a"))
    assert (found.check, found.step_id) == ("P4", "a")
    assert "position 2" in found.message
    assert "position 0" in found.message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Lane", "lane"),
        ("\u00e9", "e\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("\u1e9e", "ss"),
        ("a/\u00c9", "A/e\u0301"),
        ("\u0345", "\u0399"),
        ("\u03b1\u0345\u0301", "\u03b1\u0301\u0345"),
    ],
)
def test_ids_that_differ_only_by_case_or_composition_are_rejected(first: str, second: str):
    """Case 21."""
    found = rejected(one(first), one("between"), one(second))
    assert (found.check, found.step_id) == ("P5", second)


@given(st.lists(st.text("aAe\u00e9\u0301\u00df", min_size=1, max_size=2), min_size=1, max_size=5))
def test_accepted_ids_are_distinct_under_canonical_caseless_matching(step_ids: list[str]):
    def folded(text: str) -> str:
        return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())

    distinct = len({folded(each) for each in step_ids}) == len(step_ids)
    assert isinstance(ids(step_ids), Accepted) is distinct


def test_a_dependency_must_be_planned():
    found = rejected(one("a", deps=["b"]), one("b", deps=["nowhere"]))
    assert (found.check, found.step_id) == ("P6", "b")
    assert "'nowhere'" in found.message
    assert rejected(one("a", deps=[7])).check == "P6"


def test_a_step_does_not_depend_on_itself():
    found = rejected(one("a"), one("b", deps=["a", "b"]))
    assert (found.check, found.step_id) == ("P7", "b")


def test_a_cycle_is_shown_as_a_path_back_to_its_first_step():
    plan = [one("x"), one("b", deps=["c", "x"]), one("c", deps=["a"]), one("a", deps=["b"])]
    found = rejected(*plan)
    assert (found.check, found.step_id) == ("P8", None)
    assert found.message.endswith("b -> c -> a -> b")
    assert rejected(*plan) == found


def test_a_long_cycle_is_found_without_a_stack():
    steps = [one(str(at), deps=[str((at + 1) % 3_000)]) for at in range(3_000)]
    assert rejected(*steps).check == "P8"


@pytest.mark.parametrize("policy", ["sometimes", "", None, 7, "FAIL_FAST"])
def test_an_unknown_policy_is_rejected_and_can_be_told_apart(policy: Any):
    """Case 24 (E5)."""
    found = rejected(one(), policy=policy)
    assert (found.check, found.step_id) == (UNKNOWN_POLICY, None)
    assert UNKNOWN_POLICY == "P9"


@pytest.mark.parametrize("policy", ["fail_fast", "continue_independent"])
def test_both_policies_are_known(policy: str):
    assert isinstance(check(one(), policy=policy), Accepted)


@pytest.mark.parametrize(
    "outputs",
    [
        *(["a"], None, "a", 7, {"": "a"}, {7: "a"}, {"a": ""}, {"a": None}, {"a": ["b"]}),
        *({"a": "b\0c"}, {"a": "b", "c": 7}),
    ],
)
def test_outputs_are_a_mapping_of_names_to_paths(outputs: Any):
    """Case 25."""
    found = rejected(one("ok"), one("b", outputs=outputs))
    assert (found.check, found.step_id) == ("P10", "b")


@pytest.mark.parametrize("fn_ref", [7, None, ["lib.steps:fine"], {}])
def test_a_reference_is_a_string(fn_ref: Any):
    assert rejected(one(fn_ref=fn_ref)).check == "P11"


@pytest.mark.parametrize("fn_ref", ["", "fine", ":fine", "lib.steps:", ".fine", "lib.", ":", "."])
def test_a_reference_has_two_halves(fn_ref: str):
    """Case 26."""
    assert rejected(one(fn_ref=fn_ref)).check == "P12"


@pytest.mark.parametrize(
    ("fn_ref", "halves"),
    [
        ("a:b", ("a", "b")),
        ("a.b:c", ("a.b", "c")),
        ("a:b:c", ("a", "b:c")),
        ("a:b.c", ("a", "b.c")),
        ("a.b.c", ("a.b", "c")),
        ("a..b", ("a.", "b")),
    ],
)
def test_a_reference_splits_at_the_first_colon_else_at_the_last_dot(
    fn_ref: str, halves: tuple[str, str]
):
    asked: list[tuple[str, str]] = []

    def resolve(module: str, attribute: str) -> Resolved:
        asked.append((module, attribute))
        return Resolved(fine)

    check(one(fn_ref=fn_ref), resolve=resolve)
    assert asked == [halves]


@pytest.mark.parametrize("missing", ["a.b.c", "a.b", "a"])
def test_a_reference_to_a_missing_module_or_package_is_rejected(missing: str):
    """P13."""
    found = rejected(one(fn_ref="a.b.c:f"), resolve=failing(ModuleNotFoundError(name=missing)))
    assert found.check == "P13"
    assert repr(missing) in found.message


@pytest.mark.parametrize(
    ("error", "loaded", "number"),
    [
        (ModuleNotFoundError(name="numpy"), False, "P14"),
        (ModuleNotFoundError(name="a.b.c.d"), False, "P14"),
        (ModuleNotFoundError(name="a.b.cc"), False, "P14"),
        (ModuleNotFoundError(name="a."), False, "P14"),
        (ModuleNotFoundError(), False, "P14"),
        (ImportError(name="a.b.c"), False, "P14"),
        (ValueError("no"), False, "P14"),
        (SyntaxError("no"), False, "P14"),
        (RuntimeError("no"), False, "P14"),
        (AttributeError("f"), False, "P16"),
        (ValueError("no"), True, "P17"),
        (ModuleNotFoundError(name="a"), True, "P17"),
    ],
)
def test_an_import_that_proves_nothing_aborts(error: Exception, loaded: bool, number: str):
    """Cases 28 and 29 (P14, P16, P17)."""
    found = aborted(one("s", "a.b.c:f"), resolve=failing(error, loaded=loaded))
    assert (found.check, found.step_id, found.error) == (number, "s", error)
    assert type(error).__name__ in found.message


def test_a_module_that_lacks_the_attribute_is_rejected():
    """Case 27 (P15)."""
    found = rejected(one(fn_ref="lib.steps:absent"))
    assert found.check == "P15"
    assert "'absent'" in found.message


def test_a_resolver_that_fails_itself_aborts():
    def resolve(module: str, attribute: str) -> Resolved:
        raise OSError("\ud800")

    found = aborted(one(), resolve=resolve)
    assert found.check == "P17"
    found.message.encode("utf-8")


def test_an_interrupt_is_nobodys_finding():
    def resolve(module: str, attribute: str) -> Resolved:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(one(), resolve=resolve)


@pytest.mark.parametrize(
    ("name", "number"), [("number", "P18"), ("metadata", "P18"), ("unmarked", "P19")]
)
def test_what_is_called_must_be_a_marked_function(name: str, number: str):
    """Case 30: the mark on something that cannot be called does not suffice."""
    assert rejected(one(fn_ref=f"lib.steps:{name}")).check == number


def test_an_object_that_answers_to_every_name_is_not_marked():
    class Yes:
        def __getattr__(self, name: str) -> Any:
            return "yes"

        def __call__(self) -> None: ...

    assert rejected(one(), resolve=lambda *halves: Resolved(Yes())).check == "P19"


def test_an_object_that_fails_when_asked_for_the_mark_aborts():
    class No:
        def __getattr__(self, name: str) -> Any:
            raise ValueError(name)

        def __call__(self) -> None: ...

    assert aborted(one(), resolve=lambda *halves: Resolved(No())).check == "P17"


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("typed", {"reads": "a"}),
        ("typed", {"reads": "a", "report": "b", "other": 1}),
        ("typed", {"reads": "a", "report": "b", "ctx": 1}),
        ("anything", {"ctx": 1}),
        ("by_position", {"reads": "a"}),
        ("no_context", {}),
        ("only_named", {}),
        ("only_named", {"ctx": 1}),
        ("fine", {"x": 1}),
        ("wrapped", {"other": 1}),
    ],
)
def test_params_that_do_not_fit_are_rejected_without_a_call(name: str, params: dict[str, Any]):
    """Case 31: the context comes first and is not one of the params (D22)."""
    found = rejected(one("s", f"lib.steps:{name}", params=params))
    assert (found.check, found.step_id) == ("P20", "s")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("typed", {"reads": 7, "report": None}),
        ("typed", {"reads": "a", "report": "b", "depth": "deep"}),
        ("anything", {"self": 1, "args": 2, "kwargs": 3, "function": 4}),
        ("wrapped", {"reads": "a", "report": "b"}),
        ("opaque", {"x": 1}),
    ],
)
def test_params_fit_by_name_whatever_their_type(name: str, params: dict[str, Any]):
    """Cases 31 and 32: types pass, and so does a signature nobody can read."""
    assert isinstance(check(one(fn_ref=f"lib.steps:{name}", params=params)), Accepted)


@pytest.mark.parametrize(
    "deps", [None, 7, "a", {"a": 1}, [["a"]], ["a", {}], [{"a": 1}, "nowhere"]]
)
def test_dependencies_of_another_shape_abort(deps: Any):
    found = aborted(one("a"), one("b", deps=deps))
    assert (found.check, found.step_id) == ("P6", "b")
    assert isinstance(found.error, TypeError)


@pytest.mark.parametrize("policy", [[], {}, ["fail_fast"]])
def test_a_policy_that_cannot_be_looked_up_aborts(policy: Any):
    assert aborted(one(), policy=policy).check == "P9"


DEFECTS: list[tuple[str, list[StepSpec], str]] = [
    ("P1", [one("ok"), one(7)], "fail_fast"),
    ("P2", [one("ok"), one("")], "fail_fast"),
    ("P3", [one("ok"), one("/a")], "fail_fast"),
    ("P3b", [one("ok"), one("plan.json")], "fail_fast"),
    ("P4", [one("ok"), one("ok")], "fail_fast"),
    ("P5", [one("ok"), one("OK")], "fail_fast"),
    ("P6", [one("ok"), one("b", deps=["nowhere"])], "fail_fast"),
    ("P7", [one("ok"), one("b", deps=["b"])], "fail_fast"),
    ("P8", [one("ok", deps=["b"]), one("b", deps=["ok"])], "fail_fast"),
    ("P9", [one("ok"), one("b")], "sometimes"),
    ("P10", [one("ok"), one("b", outputs=[])], "fail_fast"),
    ("P11", [one("ok"), one("b", fn_ref=7)], "fail_fast"),
    ("P12", [one("ok"), one("b", fn_ref="fine")], "fail_fast"),
    ("P13", [one("ok"), one("b", fn_ref="nowhere:f")], "fail_fast"),
    ("P15", [one("ok"), one("b", fn_ref="lib.steps:absent")], "fail_fast"),
    ("P18", [one("ok"), one("b", fn_ref="lib.steps:number")], "fail_fast"),
    ("P19", [one("ok"), one("b", fn_ref="lib.steps:unmarked")], "fail_fast"),
    ("P20", [one("ok"), one("b", params={"x": 1})], "fail_fast"),
]
WHOLE_PLAN = {f"P{number}" for number in range(1, 10)} | {"P3b"}


@pytest.mark.parametrize(("number", "steps", "policy"), DEFECTS, ids=[d[0] for d in DEFECTS])
def test_a_check_of_all_steps_comes_before_the_functions_of_any(
    number: str, steps: list[StepSpec], policy: str
):
    """P1 to P9 win over a broken function of an earlier step; P10 to P20 go step by step."""
    found = check(one("first", "lib.steps:absent", outputs={"a": ""}), *steps, policy=policy)
    assert isinstance(found, Rejected)
    assert found.check == (number if number in WHOLE_PLAN else "P10")


@pytest.mark.parametrize(
    ("steps", "number"),
    [
        ([one("a", deps=["nowhere"]), one(7)], "P1"),
        ([one("a", deps=["a"]), one("b", deps=["nowhere"])], "P7"),
        ([one("a", deps=["a", "nowhere"])], "P6"),
        ([one("a", deps=["b"]), one("b", deps=["a", "nowhere"])], "P6"),
        ([one("a", deps=["b"]), one("b", deps=["a"]), one("c", deps=["c"])], "P7"),
        ([one("a", outputs=[], fn_ref=7)], "P10"),
        ([one(""), one(7)], "P2"),
        ([one("/plan.json")], "P3"),
        ([one("a"), one("a"), one("A")], "P4"),
        ([one("a"), one("A"), one("a")], "P5"),
        ([one("a", fn_ref="lib.steps:unmarked", params={"x": 1})], "P19"),
    ],
)
def test_the_first_finding_wins(steps: list[StepSpec], number: str):
    assert rejected(*steps).check == number


def test_a_cycle_comes_before_an_unknown_policy():
    assert rejected(one("a", deps=["b"]), one("b", deps=["a"]), policy="sometimes").check == "P8"


def test_a_broken_import_hides_the_defect_of_a_later_step():
    """4.4: and makes the ending an abort."""

    def resolve(module: str, attribute: str) -> Resolved | Unresolved:
        broken = Unresolved(ValueError("no"), module_loaded=False)
        return broken if module == "broken" else known(module, attribute)

    steps = one("a", "broken:f"), one("b", "lib.steps:unmarked")
    assert aborted(*steps, resolve=resolve).check == "P14"
    assert rejected(*steps[::-1], resolve=resolve).check == "P19"


def test_preflight_leaves_the_plan_as_it_is():
    plan = PlanSpec("p", "r", steps=(one("a", deps=["b", "b"]), one("b")))
    before = repr(plan)
    preflight(plan, known)
    assert repr(plan) == before
