"""How long bytes take from one resource to another, and what they cost (3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from statelog.domain.workflows.resources import Link, Topology


def link_seconds(link: Link, size_bytes: float) -> float:
    """Seconds over one link: its latency, and the bytes at its bandwidth (bits per second).

    Without bytes the latency alone; 0 when the bandwidth is not positive.
    """
    if size_bytes <= 0:
        return link.latency_seconds
    if link.bandwidth_bits_per_second <= 0:
        return 0.0
    return link.latency_seconds + size_bytes * 8 / link.bandwidth_bits_per_second


@dataclass(frozen=True)
class Route:
    """The links a payload takes, in order: seconds and price for that payload."""

    seconds: float = 0.0
    price: float = 0.0
    links: tuple[Link, ...] = ()


HERE = Route()
"""The route within one resource."""


class Network:
    """The links of a topology, found by their ends. A bidirectional link serves both ways."""

    def __init__(self, topology: Topology) -> None:
        self._direct: dict[tuple[str, str], Link] = {}
        self._from: dict[str, list[tuple[str, Link]]] = {}
        for link in topology.links:
            self._add(link.source_resource_id, link.target_resource_id, link)
            if link.bidirectional:
                self._add(link.target_resource_id, link.source_resource_id, link)

    def _add(self, source: str, target: str, link: Link) -> None:
        self._direct.setdefault((source, target), link)
        self._from.setdefault(source, []).append((target, link))

    def direct(self, source: str, target: str) -> Link | None:
        """The first link between two resources, None without one."""
        return self._direct.get((source, target))

    def route(self, source: str, target: str, size_bytes: float) -> Route | None:
        """The route on which so many bytes arrive soonest, hop by hop; None without any.

        Of equally fast routes the one with fewer links, then the one found first.
        """
        if source == target:
            return HERE
        return self._routes(source, size_bytes, target).get(target)

    def routes(self, source: str, size_bytes: float) -> dict[str, Route]:
        """The soonest route of so many bytes to every resource that can be reached."""
        return self._routes(source, size_bytes, None)

    def _routes(self, source: str, size_bytes: float, target: str | None) -> dict[str, Route]:
        found: dict[str, Route] = {}
        reached = 0
        open_ = [(0.0, 0, reached, source, HERE)]
        while open_:
            _, hops, _, here, route = heappop(open_)
            if here in found:
                continue
            found[here] = route
            if here == target:
                break
            for there, link in self._from.get(here, ()):
                if there not in found:
                    reached += 1
                    on = _extended(route, link, size_bytes)
                    heappush(open_, (on.seconds, hops + 1, reached, there, on))
        return found


def _extended(route: Route, link: Link, size_bytes: float) -> Route:
    return Route(
        seconds=route.seconds + link_seconds(link, size_bytes),
        price=route.price + max(0.0, size_bytes) * link.price_per_byte,
        links=(*route.links, link),
    )
