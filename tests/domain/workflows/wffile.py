"""A small WfFormat file with the peculiarities of real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("STATELOG_SHARED", ROOT.parent / "shared")) / "data" / "wfinstances"
"""Measured workflows, where they are; tests that read them have the twin too."""

TWIN: dict[str, Any] = {
    "name": "twin",
    "schemaVersion": "1.5",
    "author": {"name": "somebody"},
    "runtimeSystem": {"name": "Pegasus", "version": "5.0"},
    "workflow": {
        "specification": {
            "tasks": [
                {
                    "id": "split",
                    "name": "split",
                    "children": ["work_1", "work_2"],
                    "parents": [],
                    "inputFiles": ["in.dat"],
                    "outputFiles": ["a.dat", "b.dat", "empty.dat"],
                },
                {
                    "id": "work_1",
                    "name": "work",
                    "parents": ["split"],
                    "inputFiles": ["a.dat", "empty.dat"],
                    "outputFiles": ["c.dat"],
                },
                {
                    "id": "work_2",
                    "name": "work",
                    "parents": ["split"],
                    "inputFiles": ["b.dat", "a.dat"],
                    "outputFiles": ["d.dat", "scratch"],
                },
                {
                    "id": "join",
                    "name": "join",
                    "inputFiles": ["c.dat", "d.dat", "scratch", "join.log"],
                    "outputFiles": ["join.log"],
                },
            ],
            "files": [
                {"id": "in.dat", "sizeInBytes": 1000},
                {"id": "a.dat", "sizeInBytes": 300},
                {"id": "b.dat", "sizeInBytes": 700},
                {"id": "empty.dat", "sizeInBytes": 0},
                {"id": "c.dat", "sizeInBytes": 30},
                {"id": "d.dat", "sizeInBytes": 70},
                {"id": "join.log", "sizeInBytes": 5},
            ],
        },
        "execution": {
            "makespanInSeconds": 31.5,
            "executedAt": "2023-05-04T10:54:31",
            "tasks": [
                {
                    "id": "split",
                    "runtimeInSeconds": 6.0,
                    "command": {"program": "split", "arguments": ["-n", "2", "in.dat"]},
                    "coreCount": 2,
                    "memoryInBytes": 4096,
                    "machines": ["node-1"],
                    "avgCPU": 90.1,
                },
                {"id": "work_1", "runtimeInSeconds": 12, "machines": ["node-2"]},
                {"id": "work_2", "runtimeInSeconds": 0},
                {"id": "join"},
            ],
            "machines": [
                {"nodeName": "node-1", "cpu": {"coreCount": 24, "speedInMHz": 2400}},
                {"nodeName": "node-2", "memoryInBytes": 1048576, "architecture": "x86_64"},
            ],
        },
    },
}


def twin() -> dict[str, Any]:
    """A copy to change."""
    copied: dict[str, Any] = json.loads(json.dumps(TWIN))
    return copied


def files() -> list[Path]:
    """The measured workflows that are there."""
    return sorted(SHARED.glob("*.json"))
