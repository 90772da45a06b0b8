"""CPOP on the ten activities and three processors of the article it comes from."""

import pytest

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.algorithms.cpop import critical_path, path_lengths
from statelog.domain.planning.algorithms.heft import upward_ranks
from statelog.domain.planning.algorithms.setting import setting
from statelog.domain.planning.algorithms.transfers import Transfers
from statelog.domain.workflows.resources import Profile
from tests.domain.planning.graphs import mesh, problem, resource, workflow

SECONDS = {
    "t01": (14, 16, 9),
    "t02": (13, 19, 18),
    "t03": (11, 13, 19),
    "t04": (13, 8, 17),
    "t05": (12, 13, 10),
    "t06": (13, 16, 9),
    "t07": (7, 15, 11),
    "t08": (5, 11, 14),
    "t09": (18, 12, 20),
    "t10": (21, 7, 16),
}
MOVES = [
    *(("t01", "t02", 18), ("t01", "t03", 12), ("t01", "t04", 9), ("t01", "t05", 11)),
    *(("t01", "t06", 14), ("t02", "t08", 19), ("t02", "t09", 16), ("t03", "t07", 23)),
    *(("t04", "t08", 27), ("t04", "t09", 23), ("t05", "t09", 13), ("t06", "t08", 15)),
    *(("t07", "t10", 17), ("t08", "t10", 11), ("t09", "t10", 13)),
]
PLACES = tuple(resource(f"p{n}") for n in (1, 2, 3))


def article():
    """Topcuoglu, Hariri and Wu 2002, figure 2: a byte takes a second."""
    flow = workflow(dict.fromkeys(SECONDS, 1.0), [], MOVES)
    links = mesh(["p1", "p2", "p3"], seconds=0.0)
    even = type(links)(
        links.id,
        execution_scope_id=links.execution_scope_id,
        links=tuple(
            type(link)(
                link.source_resource_id,
                link.target_resource_id,
                bandwidth_bits_per_second=8.0,
                bidirectional=True,
            )
            for link in links.links
        ),
    )
    profiles = tuple(
        Profile(name, place.id, taken)
        for name, row in SECONDS.items()
        for place, taken in zip(PLACES, row, strict=True)
    )
    return problem(flow, PLACES, even, profiles)


def test_the_critical_path_is_that_of_the_article():
    given = setting(article())
    lengths = path_lengths(given, Transfers(given))
    names = {a.id: at for at, a in enumerate(given.activities)}
    assert lengths[names["t01"]] == pytest.approx(108)
    path = [given.activities[at].id for at in critical_path(given, lengths)]
    assert path == ["t01", "t02", "t09", "t10"]
    assert [lengths[names[name]] for name in path] == pytest.approx([108] * 4)
    assert lengths[names["t03"]] < 108


def test_the_critical_path_runs_on_the_second_processor_in_86_seconds():
    (plan,) = ALGORITHMS["cpop"].plans(article(), {}, lambda fraction: None)
    where = {a.activity_id: a.resource_id for a in plan.assignments}
    assert {where[name] for name in ("t01", "t02", "t09", "t10")} == {"p2"}
    assert plan.predicted.makespan_seconds == 86


def test_ranks_of_heft_know_no_communication():
    given = setting(article())
    ranks = dict(zip((a.id for a in given.activities), upward_ranks(given), strict=True))
    assert ranks["t10"] == pytest.approx(44 / 3)
    assert ranks["t09"] == pytest.approx(44 / 3 + 50 / 3)
