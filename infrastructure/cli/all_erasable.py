"""What may be erased, of every domain: the one place that puts it together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelog.domain.erasure import Erasable


def all_erasable() -> tuple[Erasable[Any], ...]:
    """How each domain's streams are erased; a domain adds a line. Imported when it is asked for."""
    from statelog.domain.execution.erasing import ERASABLE as EXECUTION
    from statelog.domain.planning.erasing import ERASABLE as PLANNING
    from statelog.domain.queue.erasing import ERASABLE as QUEUE
    from statelog.domain.runs.erasing import ERASABLE as RUNS
    from statelog.domain.workflows.erasing import ERASABLE as WORKFLOWS

    return (*EXECUTION, *PLANNING, *QUEUE, *RUNS, *WORKFLOWS)
