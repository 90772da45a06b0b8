"""What was measured, and on what."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from tests.bench.peers.dbos import VERSION

NO_DISK = {"tmpfs", "ramfs", "overlay"}


def facts(folder: Path) -> dict[str, str]:
    """Versions and machine, by name."""
    libraries = ("statelog", "eventsourcing", "transitions", "orjson")
    kind = file_system(folder)
    return {
        "Python": platform.python_version(),
        **{name: version(name) for name in libraries},
        "DBOS": VERSION,
        "SQLite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "CPUs": f"{os.cpu_count()} ({processor()})",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "file system": f"{kind} (syncs cost nothing there)" if kind in NO_DISK else kind,
        "one fdatasync": f"{sync_micros(folder):.0f} us",
    }


def processor() -> str:
    """The model of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else "unknown"


def file_system(folder: Path) -> str:
    """The type of the file system a folder is on, where the system tells."""
    best, kind = -1, "unknown"
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return kind
    for mount in mounts:
        _device, point, found, *_rest = mount.split()
        if folder.resolve().is_relative_to(point) and len(point) > best:
            best, kind = len(point), found
    return kind


def sync_micros(folder: Path, times: int = 101) -> float:
    """The median time of making one more page of a file durable."""
    took = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(times):
            file.write(bytes(4096))
            start = perf_counter()
            os.fdatasync(file.fileno())
            took.append(perf_counter() - start)
    return sorted(took)[times // 2] * 1e6
