"""What a scheduling algorithm is: a pure generator of schedule plans (P14)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from statelog.domain.planning.problem import Problem
from statelog.domain.workflows.schedule_plan import SchedulePlan

Object = Mapping[str, Any]

Report = Callable[[float], None]
"""Told the fraction done for each placed activity; raises to cancel."""

Plans = Callable[[Problem, Object, Report], Iterator[SchedulePlan]]
"""The plans of a problem under the configuration of the selection.

The same input gives the same plans, byte for byte. Raises `Invalid` when it cannot be planned.
"""


@dataclass(frozen=True)
class Algorithm:
    """One algorithm and its descriptor. Several candidates come of it when it is `multiple`."""

    id: str
    name: str
    objective: str
    multiple: bool
    description: str
    plans: Plans
    defaults: Object = field(default_factory=dict)
    version: str = "1"
