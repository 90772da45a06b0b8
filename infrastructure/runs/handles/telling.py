"""What the files of an activity tell, in the words of the port."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from statelog.infrastructure.runs.handles.control import read
from statelog.infrastructure.runs.handles.port import Observation, Ref, Seen

_LAST_WORDS: Final = 300
_TOLD: Final = (
    *("signal", "stdoutBytes", "stderrBytes", "cpuSeconds", "maxRssBytes"),
    *("outputLost", "leftOver", "notEnded"),
)


def observed(
    ref: Ref,
    control: Path,
    order: Mapping[str, Any],
    started: Mapping[str, Any] | None,
    end: Mapping[str, Any] | None,
) -> Observation:
    """An activity as its files show it; those that are not there yet are None."""
    metadata: dict[str, Any] = {}
    if order.get("image"):
        metadata["warning"] = f"the image {order['image']} is not used: commands run on the machine"
    if end is not None:
        metadata |= {name: end[name] for name in _TOLD if end.get(name)}
    return Observation(
        ref,
        _seen(started, end),
        external_id=str(started["pid"]) if started else "",
        submitted_at=order.get("submittedAt", 0.0),
        started_at=_start(started, end),
        finished_at=end["finishedAt"] if end else 0.0,
        exit_code=end["exitCode"] if end else None,
        failure=_failure(control, end) if end else "",
        log=f"{control.parent.name}/{control.name}",
        metadata=metadata,
    )


def _start(started: Mapping[str, Any] | None, end: Mapping[str, Any] | None) -> float:
    if started is not None:
        return float(started["startedAt"])
    return float(end["startedAt"]) if end else 0.0


def _seen(started: Mapping[str, Any] | None, end: Mapping[str, Any] | None) -> Seen:
    if end is None:
        return Seen.STARTING if started is None else Seen.RUNNING
    if end["how"] == "stopped":
        return Seen.STOPPED
    return Seen.COMPLETED if end["how"] == "exited" and end["exitCode"] == 0 else Seen.FAILED


def _failure(control: Path, end: Mapping[str, Any]) -> str:
    """Why it failed, and what it said last."""
    if end["how"] == "not started":
        return f"start activity: {end['failure']}"
    if end["how"] == "lost":
        return str(end["failure"])
    if end["how"] == "stopped":
        return "stopped"
    if end["how"] == "timed out":
        seconds = end["finishedAt"] - end["startedAt"]
        return f"timed out after {seconds:.1f} s"
    if end["exitCode"] == 0:
        return ""
    how = f"ended by {end['signal']}" if end["signal"] else f"exit code {end['exitCode']}"
    words = _last_line(control / "stderr.log")
    return f"{how}: {words}" if words else how


def _last_line(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4096))
        lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1][-_LAST_WORDS:] if lines else ""
    return ""


def verdict(control: Path, ended: list[int]) -> dict[str, Any]:
    """The end of an activity whose shim did not live to tell it."""
    started = read(control / "started.json")
    if started is not None:
        failure = "the process that watched over the command was ended from outside"
    elif (control / "order.json").exists():
        failure = "the command was never started: whoever was about to start it ended before"
    else:
        failure = "the command was never started: nothing of it was prepared"
    return {
        "how": "lost",
        "failure": f"{failure}, and what it left was ended" if ended else failure,
        "exitCode": None,
        "signal": "",
        "startedAt": started["startedAt"] if started else 0.0,
        "finishedAt": time.time(),
        "leftOver": len(ended),
    }
