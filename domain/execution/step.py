"""What authors of step functions use: the decorator, the context, results and errors (D22)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

MARK: Final = "__statelog_step__"


class Marker:
    """Marks a parameter as `Annotated[Path, In]` or `Annotated[Path, Out]`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


In: Final = Marker("In")
"""An input: hashed into the fingerprint when the spec names no `inputs`."""
Out: Final = Marker("Out")
"""An output: coerced to a path; documentation."""


def step(function: F) -> F:
    """Mark a function as a step. Its first positional parameter is the `StepContext`."""
    setattr(function, MARK, True)
    return function


class StepError(Exception):
    """An ordinary work failure, with an optional code and advice for the person who reads it."""

    kind = "permanent"

    def __init__(self, message: str, *, code: str | None = None, advice: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.advice = advice


class PermanentStepError(StepError):
    """Trying again would not help."""


class TransientStepError(StepError):
    """Trying again might help; the engine records that and does not retry."""

    kind = "transient"


@dataclass(frozen=True)
class Artifact:
    """A file or directory a step produced. `digest` is `sha256:<hex>` or `dirhash:<hex>`."""

    key: str
    path: str
    digest: str | None = None


@dataclass(frozen=True)
class StepResult:
    """What a step function returns; returning nothing equals an empty result."""

    artifacts: Sequence[Artifact] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


class Channel(Protocol):
    """How a context reaches the engine; authors never see it."""

    def emit(self, type: str, payload: Mapping[str, Any]) -> None:
        """Publish a custom event of the step."""

    def artifact(self, key: str, path: Path, digest: str | None) -> Artifact:
        """Register an artifact, computing its digest when not given."""

    def progress(self, percent: float, message: str | None) -> None:
        """Report progress."""


@dataclass(frozen=True)
class StepContext:
    """What a running step knows: who it is, where it works, and how it reports.

    `workdir` is the step's own directory; `outputs` the resolved required outputs by key.
    """

    realm: str
    scope: Mapping[str, Any]
    plan_id: str
    step_id: str
    step_name: str
    workdir: Path
    fingerprint: str
    run_id: str
    outputs: Mapping[str, Path]
    execution_id: str
    plan_generation: str | None
    run_token: int | None
    channel: Channel = field(repr=False, compare=False)

    def emit(self, type: str, **payload: Any) -> None:
        """Publish an event of a type of your own; a field `job` shows in the snapshot."""
        self.channel.emit(type, payload)

    def artifact(self, key: str, path: Path | str, digest: str | None = None) -> Artifact:
        """Register a produced file or directory; its digest is computed when not given."""
        return self.channel.artifact(key, Path(path), digest)

    def progress(self, percent: float, message: str | None = None) -> None:
        """Report progress in percent, clamped to 0..100; at most two a second are published."""
        number = percent if type(percent) is int else float(percent)
        self.channel.progress(min(100.0, max(0.0, number)), message)
