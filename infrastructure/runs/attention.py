"""What a supervisor turns to next: activities to look at, activities to stop, and for how long not.

It keeps count of what went wrong in a row. None of it outlives the process: whoever is next counts
anew, and looks at everything at once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final

from statelog.domain.runs.run import Run
from statelog.infrastructure.runs.handles.port import Seen
from statelog.infrastructure.runs.operations import Found, Looked, Missed

TIMES: Final = 3
"""So many failed inspections in a row fail a handle (U11), and so many failed stops."""

LOOK_S: Final = 1.0
"""How often an activity is looked at whose end nothing tells."""

SURE_S: Final = 10.0
"""How often one is looked at although its end would tell itself."""


class Attention:
    """For each activity: when it is due, what failed in a row, whether it is to be stopped."""

    def __init__(self) -> None:
        self._misses: Counter[str] = Counter()
        self._unstopped: Counter[str] = Counter()
        self._doomed: dict[str, str] = {}
        self._asked: set[str] = set()
        self._due: dict[str, float] = {}

    def doom(self, activity_id: str) -> str:
        """Why an activity is stopped that cannot be inspected; empty for every other."""
        return self._doomed.get(activity_id, "")

    def given_up(self, activity_id: str) -> bool:
        """Whether it was tried often enough to stop it."""
        return self._unstopped[activity_id] >= TIMES

    def next(self, run: Run, busy: Collection[str], failing: bool) -> Iterator[tuple[str, bool]]:
        """Live activities that are due and nobody is busy with, and whether each is to be stopped.

        What is to be stopped is due at once, and after a stop that failed as everything else.
        """
        now = time.monotonic()
        for activity_id in run.live:
            if activity_id in busy:
                continue
            stop = failing or run.tasks[activity_id].interrupted or activity_id in self._doomed
            if (stop and activity_id not in self._asked) or self._due.get(activity_id, 0.0) <= now:
                if stop:
                    self._asked.add(activity_id)
                yield activity_id, stop

    def patience_s(self, run: Run, busy: Collection[str]) -> float:
        """Seconds until something is due, 0 when something is."""
        idle = (each for each in run.live if each not in busy)
        due = min((self._due.get(each, 0.0) for each in idle), default=float("inf"))
        return max(0.0, due - time.monotonic())

    def over(self, activity_ids: Collection[str]) -> None:
        """Something tells that these have ended: they are due."""
        self._due.update(dict.fromkeys(activity_ids, 0.0))

    def note(self, activity_id: str, found: Found, watch: Callable[[str], bool]) -> None:
        """Count what was found; `watch` says whether the end of what runs will tell itself."""
        if isinstance(found, Looked):
            self._misses.pop(activity_id, None)
            self._unstopped.pop(activity_id, None)
            watched = found.observation.seen is Seen.RUNNING and watch(activity_id)
            self._due[activity_id] = time.monotonic() + (SURE_S if watched else LOOK_S)
        elif isinstance(found, Missed):
            self._due[activity_id] = time.monotonic() + LOOK_S
            self._missed(activity_id, found)

    def _missed(self, activity_id: str, found: Missed) -> None:
        if found.stopping:
            self._unstopped[activity_id] += 1
            return
        self._misses[activity_id] += 1
        if self._misses[activity_id] >= TIMES:
            why = f"{TIMES} inspections in a row failed: {found.why}"
            self._doomed.setdefault(activity_id, why)
