"""A Hypothesis strategy for plans; it needs the extra `test`."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from statelog.domain.execution.spec import POLICIES, PlanSpec, StepSpec


@st.composite
def plans(
    draw: st.DrawFn, *, functions: Sequence[str] = ("steps:work",), max_size: int = 8
) -> PlanSpec:
    """Plans without a cycle, their steps listed in any order.

    Steps have no parameters, inputs or outputs, and call one of `functions`, which are `fn_ref`s.
    """
    names = [f"step-{at}" for at in range(draw(st.integers(0, max_size)))]
    steps = [
        StepSpec(name, name, draw(st.sampled_from(functions)), deps=_needs(draw, names[:at]))
        for at, name in enumerate(names)
    ]
    return PlanSpec(
        plan_id="plan",
        realm="test",
        steps=tuple(draw(st.permutations(steps))),
        failure_policy=draw(st.sampled_from(POLICIES)),
    )


def _needs(draw: st.DrawFn, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
