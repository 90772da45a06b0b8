"""Multi-objective HEFT (Durillo and Prodan, 2014): trade-offs of makespan and cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from statelog.domain.planning.algorithms.board import Board
from statelog.domain.planning.algorithms.heft import by_rank
from statelog.domain.planning.algorithms.port import Algorithm, Object, Report
from statelog.domain.planning.algorithms.setting import Placement, Setting, plan, setting
from statelog.domain.planning.algorithms.tradeoffs import best, fronts
from statelog.domain.planning.algorithms.transfers import Transfers, unreachable
from statelog.domain.planning.estimate import OPTION_COUNT, option_count
from statelog.domain.planning.problem import Problem
from statelog.domain.pmap import PMap
from statelog.domain.workflows.schedule_plan import SchedulePlan


@dataclass(frozen=True, eq=False)
class Partial:
    """A schedule of the activities so far, which shares what it did not change with others.

    `done` has (finish, resource) of each activity, `trail` the placements as (last, those before).
    """

    boards: tuple[Board, ...]
    done: PMap[int, tuple[float, int]]
    makespan: float = 0.0
    cost: float = 0.0
    trail: Any = None


class Option(NamedTuple):
    """One more placement on a partial schedule, and what that comes to."""

    makespan: float
    cost: float
    base: Partial
    placement: Placement


def plans(problem: Problem, configuration: Object, report: Report) -> Iterator[SchedulePlan]:
    """Plans of which none dominates another, fastest first; at most `optionCount`."""
    given = setting(problem)
    transfers = Transfers(given)
    keep = option_count(configuration)
    partials = [Partial(tuple(given.boards()), PMap())]
    for count, at in enumerate(by_rank(given), start=1):
        options = [option for base in partials for option in _options(given, transfers, base, at)]
        if not options:
            raise unreachable(given, at)
        options.sort(key=lambda option: option.placement.finish)
        partials = [_grown(option) for option in best(options, keep)]
        report(count / len(given.activities))
    for number, partial in enumerate(fronts(partials)[0], start=1):
        placements = _placements(partial)
        yield plan(given, MOHEFT.id, MOHEFT.objective, placements, number=number)


def _options(
    given: Setting, transfers: Transfers, base: Partial, activity: int
) -> Iterator[Option]:
    above = [(*base.done[n], size) for n, size in given.before[activity]]
    for r in given.places[activity]:
        ready, transfer = transfers.arrival(above, r)
        if ready < inf:
            finish, start, lane = base.boards[r].offer(ready, given.seconds[activity][r])
            yield Option(
                makespan=max(base.makespan, finish),
                cost=base.cost + given.cost(activity, r),
                base=base,
                placement=Placement(activity, r, lane, ready, start, finish, transfer),
            )


def _grown(option: Option) -> Partial:
    placed, base = option.placement, option.base
    board = base.boards[placed.resource].copy()
    board.take(placed.lane, placed.finish)
    return Partial(
        boards=(*base.boards[: placed.resource], board, *base.boards[placed.resource + 1 :]),
        done=base.done.set(placed.activity, (placed.finish, placed.resource)),
        makespan=option.makespan,
        cost=option.cost,
        trail=(placed, base.trail),
    )


def _placements(partial: Partial) -> list[Placement]:
    found = []
    trail = partial.trail
    while trail is not None:
        placed, trail = trail
        found.append(placed)
    return found[::-1]


MOHEFT = Algorithm(
    id="moheft",
    name="MOHEFT",
    objective="time-cost",
    multiple=True,
    description="Trade-offs of makespan and cost: HEFT on many partial schedules at once.",
    plans=plans,
    defaults={"optionCount": OPTION_COUNT},
)
