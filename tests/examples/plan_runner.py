"""The smallest thing that runs a plan's steps: in order, with markers, recording what they say.

It stands for the engine where a test is about the step functions of an example: a step runs again
when its parameters, the content of its `In` files or its declared outputs say so, and a failure
blocks what depends on it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from statelog.domain.execution import Artifact, In, StepContext, StepResult
from statelog.domain.execution.step import StepError


@dataclass
class Recorder:
    """A channel that keeps everything a step says."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    percents: list[float] = field(default_factory=list)

    def emit(self, type: str, payload: Mapping[str, Any]) -> None:
        self.events.append((type, dict(payload)))

    def artifact(self, key: str, path: Path, digest: str | None) -> Artifact:
        made = Artifact(key, str(path), digest)
        self.artifacts.append(made)
        return made

    def progress(self, percent: float, message: str | None) -> None:
        self.percents.append(percent)


@dataclass
class Outcome:
    """What became of one step: succeeded, reused, failed or blocked."""

    word: str
    result: StepResult | None = None
    error: StepError | None = None
    said: Recorder = field(default_factory=Recorder)


def context(folder: Path, step_id: str, outputs: Mapping[str, str], said: Recorder) -> StepContext:
    """A context of a step that works in `folder / step_id`."""
    workdir = folder / step_id
    workdir.mkdir(parents=True, exist_ok=True)
    return StepContext(
        realm="test",
        scope={},
        plan_id=folder.name,
        step_id=step_id,
        step_name=step_id,
        workdir=workdir,
        fingerprint="",
        run_id="",
        outputs={key: workdir / path for key, path in outputs.items()},
        execution_id="",
        plan_generation=None,
        run_token=None,
        channel=said,
    )


def is_path(hint: Any) -> bool:
    return hint is Path or (get_origin(hint) is Annotated and get_args(hint)[0] is Path)


def fingerprint(function: Callable[..., Any], spec: Mapping[str, Any]) -> str:
    """Parameters, outputs and the content of `In` files, as section 5.3 has it."""
    hints = get_type_hints(function, include_extras=True)
    parts = [json.dumps([spec["params"], spec.get("outputs")], sort_keys=True)]
    for key, value in spec["params"].items():
        if In in get_args(hints.get(key)):
            content = Path(value).read_bytes() if Path(value).is_file() else b"missing"
            parts.append(hashlib.sha256(content).hexdigest())
    return "\n".join(parts)


def run(plan: Mapping[str, Any], module: Any, work_root: Path) -> dict[str, Outcome]:
    """Run every step in the order of the plan, which has to be a topological one."""
    outcomes: dict[str, Outcome] = {}
    for spec in plan["steps"]:
        deps = [outcomes[dep].word for dep in spec.get("deps", ())]
        blocked = {"failed", "blocked"} & set(deps)
        folder = work_root / plan["plan_id"]
        outcomes[spec["step_id"]] = Outcome("blocked") if blocked else _step(spec, module, folder)
    return outcomes


def _step(spec: Mapping[str, Any], module: Any, folder: Path) -> Outcome:
    function = getattr(module, spec["fn_ref"].split(":")[1])
    said = Recorder()
    ctx = context(folder, spec["step_id"], spec.get("outputs", {}), said)
    marker, print_ = ctx.workdir / "success.fingerprint", fingerprint(function, spec)
    there = all(path.exists() for path in ctx.outputs.values())
    if there and marker.exists() and marker.read_text() == print_:
        return Outcome("reused")
    marker.unlink(missing_ok=True)
    hints = get_type_hints(function, include_extras=True)
    params = {
        key: Path(value) if is_path(hints.get(key)) else value
        for key, value in spec["params"].items()
    }
    inspect.signature(function).bind(ctx, **params)
    try:
        result = function(ctx, **params)
    except StepError as error:
        return Outcome("failed", error=error, said=said)
    assert all(path.exists() for path in ctx.outputs.values())
    json.dumps([result.metrics, said.events], allow_nan=False)
    marker.write_text(print_)
    return Outcome("succeeded", result, said=said)
