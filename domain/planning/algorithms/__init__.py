"""Scheduling algorithms: pure generators of schedule plans."""

from __future__ import annotations

from collections.abc import Mapping

from statelog.domain.planning.algorithms.cpop import CPOP
from statelog.domain.planning.algorithms.heft import HEFT
from statelog.domain.planning.algorithms.list_schedulers import MAXMIN, MINMIN
from statelog.domain.planning.algorithms.moheft import MOHEFT
from statelog.domain.planning.algorithms.port import Algorithm

ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.id: algorithm for algorithm in (HEFT, CPOP, MINMIN, MAXMIN, MOHEFT)
}
"""The algorithms that come with the product, by id, in the order in which they are listed."""

__all__ = ["ALGORITHMS", "Algorithm"]
