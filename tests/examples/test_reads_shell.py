"""The example `reads-shell`: its README's commands, one after the other, and what they print."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.house.page import blocks

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "reads-shell"
READS = ROOT / "docs" / "examples" / "reads-qc" / "data"
SHARED = Path(os.environ.get("STATELOG_SHARED", ROOT.parent / "shared")) / "data" / "reads"


def page_commands() -> str:
    """The `sh` blocks of the README as one script."""
    found = blocks((EXAMPLE / "README.md").read_text(encoding="utf-8"))
    return "\n".join(block.body for block in found if block.language == "sh")


def shell(script: str, folder: Path) -> str:
    """Run a script at the root of a tree like ours; what it printed."""
    folder.chmod(0o700)
    (folder / "docs").symlink_to(ROOT / "docs")
    own = {key: value for key, value in os.environ.items() if not key.startswith("STATELOG_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", script],
        cwd=folder,
        env={**own, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expected(folder: Path) -> list[list[str]]:
    """The figures of a pair, counted once more in Python."""
    rows = []
    for name in ("r1", "r2"):
        data = gzip.decompress((folder / f"{name.upper()}.fq.gz").read_bytes())
        sequences = data.splitlines()[1::4]
        joined = b"".join(each + b"\n" for each in sorted(sequences))
        rows += [
            [name, "reads", str(len(sequences))],
            [name, "bases", str(sum(map(len, sequences)))],
            [name, "longest", str(max(map(len, sequences)))],
            [name, "sorted-sequences", sha256(joined).hexdigest()],
        ]
    return rows


def summary(folder: Path, run_id: str) -> list[list[str]]:
    workspace = folder / "statelog.db.work" / run_id / "workspaces" / "join"
    return [line.split("\t") for line in (workspace / "summary.tsv").read_text().splitlines()]


def test_the_readme_runs_and_its_figures_are_right(tmp_path: Path):
    """Planned, run, broken and recovered; every figure as Python counts it."""
    script = page_commands() + "statelog execution show reads-2 --json > broken.json\n"
    shell(script, tmp_path)
    assert summary(tmp_path, "reads-1") == expected(READS)
    assert summary(tmp_path, "reads-3") == expected(READS)
    broken = json.loads((tmp_path / "broken.json").read_text())
    assert broken["run"]["status"] == "failed"
    assert "unpack failed: " in broken["run"]["failureReason"]
    states = {each["activityId"]: each["status"] for each in broken["activities"]}
    assert states["join"] == "cancelled"
    assert set(states.values()) <= {"failed", "cancelled"}


@pytest.mark.parametrize("reads", [SHARED] if (SHARED / "R1.fq").exists() else [READS], ids=str)
def test_other_reads(reads: Path, tmp_path: Path):
    """On the pair of `data/reads` in the shared folder; the test above is its twin."""
    packed = tmp_path / "reads"
    packed.mkdir()
    for name in ("R1", "R2"):
        plain = reads / f"{name}.fq"
        shipped = READS / f"{name}.fq.gz"
        data = gzip.compress(plain.read_bytes()) if plain.exists() else shipped.read_bytes()
        (packed / f"{name}.fq.gz").write_bytes(data)
    script = page_commands().split("! READS=")[0]
    shell(script.replace("$PWD/docs/examples/reads-qc/data", str(packed)), tmp_path)
    assert summary(tmp_path, "reads-1") == expected(packed)
