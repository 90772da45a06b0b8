"""What became of one wish to execute a plan, and telling it (1.11, 4.3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from statelog.domain.execution.endings import Resolution, log_level
from statelog.infrastructure.logs import about, shortened

log = logging.getLogger("statelog.execution")


@dataclass(frozen=True)
class Resolved:
    """What became of one wish to execute a plan, and of the attempt if there was one."""

    plan_id: str
    resolution: Resolution
    reason: str = ""
    plan_generation: str | None = None
    run_token: int | None = None
    execution_id: str | None = None
    report: Mapping[str, Any] | None = None

    @property
    def outcome(self) -> str | None:
        """The attempt's outcome."""
        return None if self.report is None else self.report["outcome"]

    @property
    def termination_reason(self) -> str | None:
        """Why the attempt ended."""
        return None if self.report is None else self.report["termination_reason"]

    @property
    def succeeded(self) -> bool:
        """Whether a success is recorded."""
        return self.resolution is Resolution.FINALIZED and self.outcome == "succeeded"

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Resolved:
        """What `to_json` wrote."""
        return cls(
            value["plan_id"],
            Resolution(value["resolution"]),
            value["reason"],
            value["plan_generation"],
            value["run_token"],
            value["execution_id"],
            value["report"],
        )

    def to_json(self) -> dict[str, Any]:
        """The line that `--json` prints for a plan."""
        return {
            "plan_id": self.plan_id,
            "plan_generation": self.plan_generation,
            "run_token": self.run_token,
            "execution_id": self.execution_id,
            "resolution": self.resolution.value,
            "reason": self.reason,
            "outcome": self.outcome,
            "termination_reason": self.termination_reason,
            "report": self.report,
        }


def tell(resolved: Resolved) -> None:
    """Log a resolution as loud as it is (4.3)."""
    failed = resolved.resolution is Resolution.FINALIZED and not resolved.succeeded
    log.log(
        logging.getLevelName(log_level(resolved.resolution, resolved.report)),
        "plan %r: %s%s",
        resolved.plan_id,
        "finalized, failed" if failed else resolved.resolution.value,
        f" ({shortened(resolved.reason)})" if resolved.reason else "",
        extra=about(resolved.plan_id, resolved.execution_id, resolution=resolved.resolution.value),
    )


def heard(hook: Callable[[Resolved], None], resolved: Resolved) -> None:
    """Call a hook of the user's; one that fails is told and changes nothing."""
    try:
        hook(resolved)
    except Exception:
        log.exception(
            "plan %r: on_resolution failed", resolved.plan_id, extra=about(resolved.plan_id)
        )
