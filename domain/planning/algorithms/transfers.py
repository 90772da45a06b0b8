"""Transfers over the routes of a topology; resources that cannot reach each other are infinite."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from statelog.domain.errors import Invalid
from statelog.domain.planning.algorithms.setting import Setting, total
from statelog.domain.workflows.network import Network, Route


class Transfers:
    """Seconds between resources, by number.

    Each pair has one route, the soonest for the mean payload of the workflow, used for every size:
    latency and seconds per byte are looked up, and the simulator is never slower.
    """

    def __init__(self, given: Setting) -> None:
        network = Network(given.problem.topology)
        sizes = [size for edges in given.before for _, size in edges if size > 0]
        payload = max(1.0, sum(sizes) / max(1, len(sizes)))
        ids = [resource.id for resource in given.resources]
        self._lines = [[_line(route) for route in _row(network, id, ids, payload)] for id in ids]

    def seconds(self, source: int, target: int, size_bytes: int) -> float:
        """Seconds from one resource to another; none without bytes or within one."""
        if source == target or size_bytes <= 0:
            return 0.0
        latency, per_byte = self._lines[source][target]
        return latency + size_bytes * per_byte

    def arrival(self, above: Iterable[tuple[float, int, int]], target: int) -> tuple[float, float]:
        """When the data of (finish, resource, bytes) are all on a resource, and their seconds."""
        ready = total = 0.0
        for finish, source, size_bytes in above:
            seconds = self.seconds(source, target, size_bytes)
            ready = max(ready, finish + seconds)
            total += seconds
        return ready, total

    def means(self) -> tuple[float, float]:
        """Mean latency and seconds per byte over all ordered pairs that have a route."""
        lines = [
            line
            for source, row in enumerate(self._lines)
            for target, line in enumerate(row)
            if source != target and line[0] < inf
        ]
        count = max(1, len(lines))
        return total(line[0] for line in lines) / count, total(line[1] for line in lines) / count


def _row(network: Network, source: str, ids: list[str], payload: float) -> list[Route | None]:
    routes = network.routes(source, payload)
    return [routes.get(id) for id in ids]


def _line(route: Route | None) -> tuple[float, float]:
    """Latency and seconds per byte of a route; a link without bandwidth takes no time (3.4)."""
    if route is None:
        return inf, 0.0
    links = [link for link in route.links if link.bandwidth_bits_per_second > 0]
    latency = total(link.latency_seconds for link in links)
    return latency, total(8 / link.bandwidth_bits_per_second for link in links)


def unreachable(given: Setting, activity: int) -> Invalid:
    """The error for an activity whose input cannot be brought to any resource that holds it."""
    name = given.activities[activity].id
    return Invalid(
        "networkTopology.links", f"no route brings the input of {name!r} anywhere in finite time"
    )
