"""Events of which only the headers are left, where a command shows what events say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from statelog.infrastructure.cli.output import tell

if TYPE_CHECKING:
    from statelog.domain.event import Recorded


def readable(events: Iterable[Recorded]) -> Iterator[Recorded]:
    """The events that have their payloads; says on stderr how many have not."""
    gone = 0
    for recorded in events:
        if recorded.data is None:
            gone += 1
        else:
            yield recorded
    if gone:
        tell(f"{gone:,} events were erased or archived, and are passed over")
