"""The port of runtimes: what can start, look at and stop a command somewhere (P19).

A runtime is three calls. Slurm and Kubernetes follow behind the same three; the local one is
`local.LocalRuntime`. All are called from several threads at once, for different handles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol

from statelog.domain.errors import StatelogError

RUN_ID: Final = "STATELOG_RUN_ID"
ACTIVITY_ID: Final = "STATELOG_ACTIVITY_ID"
ATTEMPT: Final = "STATELOG_ATTEMPT"
RESOURCE_ID: Final = "STATELOG_RESOURCE_ID"
"""In the environment of every command."""


class RuntimeFailure(StatelogError):
    """A runtime could not be asked. It says nothing about the activity, which may well run on."""


class Seen(Enum):
    """What a runtime sees of an activity, in the words of handles (1.9)."""

    STARTING, RUNNING = "starting", "running"
    COMPLETED, FAILED, STOPPED = "completed", "failed", "stopped"

    @property
    def over(self) -> bool:
        """Whether it will never change again."""
        return self in (Seen.COMPLETED, Seen.FAILED, Seen.STOPPED)


@dataclass(frozen=True)
class Ref:
    """Which activity is meant: one is started at most once in a run."""

    run_id: str
    activity_id: str

    @property
    def id(self) -> str:
        """The id of its handle (1.9)."""
        return f"{self.run_id}:{self.activity_id}"


@dataclass(frozen=True)
class Spec:
    """A command to start, as it is recorded before it is started.

    `workspace` is its folder, `directory` the place below it to start in. `environment` is what
    the command sees beside what its runtime adds, which includes the variables named in `pass_on`
    as the worker has them. `timeout_seconds` 0 is none.
    """

    ref: Ref
    resource_id: str
    runtime_id: str
    attempt: int
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    workspace: Path
    directory: str = ""
    timeout_seconds: float = 0.0
    image: str = ""
    pass_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observation:
    """What a runtime says of an activity. Times are epoch seconds, 0 when not known.

    `external_id` is the runtime's own name for it. `container_started_at` is left 0 by runtimes
    without containers. `log` names where its output is. `failure` is for people and is empty
    unless the activity failed or was stopped.
    """

    ref: Ref
    seen: Seen
    external_id: str = ""
    submitted_at: float = 0.0
    started_at: float = 0.0
    container_started_at: float = 0.0
    finished_at: float = 0.0
    exit_code: int | None = None
    failure: str = ""
    log: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Runtime(Protocol):
    """Where commands run."""

    def start(self, spec: Spec) -> Observation:
        """Start a command, once: for an activity that was started this is `inspect`.

        An activity that cannot be started is answered as failed. Raises `RuntimeFailure` when it
        is not known whether it was started.
        """

    def inspect(self, ref: Ref) -> Observation:
        """Look at an activity. One that was never started is answered as failed, for good.

        Raises `RuntimeFailure` when nobody can tell now.
        """

    def stop(self, ref: Ref) -> Observation:
        """End an activity with all it started, and wait for that; what it is then.

        One that ended by itself before is answered as it ended. Raises `RuntimeFailure` when it
        may run on.
        """

    def watch(self, ref: Ref) -> int | None:
        """A descriptor that polls readable once the activity is over, to be closed by the caller.

        None where there is no such thing: then it is looked at once a second.
        """
