"""Whatever is asked for, it is refused by name or it ends: nothing else is ever raised."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.runs.request import RunRequest
from statelog.domain.workflows.shape import read
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.runs.simulation import run_simulation
from tests.domain.runs.bundles import diamond, golden

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["", "lab", "ingest", "\ud800", "a/b", "x" * 300, "real", "simulation"]),
    st.just([]),
    st.just({}),
    st.just([{}]),
)
Path = tuple[Any, ...]


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    """Every place in a JSON value."""
    if here:
        yield here
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths(value[key], (*here, key))


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A good request in which a few places hold something else, or nothing, or are there twice."""
    document: dict[str, Any] = copy.deepcopy(draw(st.sampled_from([diamond(), golden()])))
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(sorted(paths(document), key=repr)))
        inside = document
        for key in above:
            inside = inside[key]
        what = draw(st.sampled_from(["another", "nothing", "twice"]))
        if what == "nothing":
            del inside[last]
        elif what == "twice" and isinstance(inside, list):
            inside.append(copy.deepcopy(inside[last]))
        else:
            inside[last] = copy.deepcopy(draw(VALUES))
    return document


@settings(max_examples=250, deadline=None)
@given(requests())
def test_a_request_is_refused_by_name_or_comes_to_an_end(document: dict[str, Any]):
    """And what was refused left nothing in the log."""
    with Journal() as journal:
        try:
            asked = read(RunRequest, document)
            job = Runs(journal).submit(asked, actor="alice")
        except Invalid:
            assert journal.head() == 0
            return
        frozen = read(RunRequest, dict(job.state.payload))
        if frozen.run.mode != "simulation":
            return
        try:
            ended = run_simulation(journal, frozen, actor="w")
        except Invalid:
            assert list(journal.history("run")) == []
            return
        assert ended.state.ended
        runs = Runs(journal)
        assert runs.get(asked.run.id)["run"]["status"] in ("completed", "failed")
        assert runs.comparison(asked.run.id)["runId"] == asked.run.id
