"""When to look again at a plan that could not be admitted: later and later."""

from __future__ import annotations

import threading
from typing import Final

from statelog.infrastructure.execution.dispatch import Ask

MOST_PATIENCE_S: Final = 60


class Retries:
    """Plans that could not be admitted, and when to look at each again: later and later."""

    def __init__(self) -> None:
        self._plans: dict[str, tuple[Ask, int, float]] = {}
        self._guard = threading.Lock()

    def add(self, plan_id: str, ask: Ask, now_s: float) -> None:
        """Look again after 1, 2, 4 ... at most 60 s."""
        with self._guard:
            earlier, failed, _ = self._plans.get(plan_id, (None, 0, 0.0))
            at = now_s + min(2**failed, MOST_PATIENCE_S)
            self._plans[plan_id] = (ask.after(earlier), min(failed + 1, 6), at)

    def forget(self, plan_id: str) -> None:
        """It was admitted, or something else was said."""
        with self._guard:
            self._plans.pop(plan_id, None)

    def due(self, now_s: float) -> list[tuple[str, Ask]]:
        """Those whose time has come; each is answered once an `add`."""
        with self._guard:
            found = [(id, ask) for id, (ask, _, at) in self._plans.items() if at <= now_s]
            for id, ask in found:
                self._plans[id] = (ask, self._plans[id][1], float("inf"))
        return found
