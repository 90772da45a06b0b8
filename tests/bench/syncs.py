"""How often a step waits for the disk, counted by the kernel's own calls."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.bench.chains import Chains
from tests.bench.result import Line

FEW, MORE = 10, 60
WORK, WANTED = "syncs of a no-op step of a chain", "= 2"


def measure(folder: Path) -> Line:
    """The syncs of one step: what a longer chain has more than a shorter one.

    Both are short enough to end before the store's first checkpoint, whose syncs belong to no
    step.
    """
    strace = shutil.which("strace")
    if strace is None:
        return Line("B6", WORK, "strace", WANTED, None, None, note="strace not found")
    try:
        few, more = (_syncs(strace, folder / f"syncs-{n}", n) for n in (FEW, MORE))
    except RuntimeError as error:
        return Line("B6", WORK, "strace", WANTED, None, None, note=str(error))
    figure = (more - few) / (MORE - FEW)
    return Line("B6", WORK, "strace", WANTED, figure, figure == 2)


def _syncs(strace: str, folder: Path, steps: int) -> int:
    counts = folder.with_suffix(".strace")
    done = subprocess.run(
        [
            *(strace, "-f", "-c", "-e", "trace=fdatasync,fsync", "-o", counts),
            *(sys.executable, "-m", "tests.bench.syncs", folder, str(steps)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"strace failed: {done.stderr.strip().splitlines()[-1:]}")
    return total(counts.read_text(encoding="utf-8"))


def total(summary: str) -> int:
    """The calls in a summary of `strace -c`: of its columns the fourth."""
    fields = [line.split() for line in summary.splitlines()]
    return sum(int(each[3]) for each in fields if each and each[-1] in ("fdatasync", "fsync"))


def main() -> None:
    """Run one chain: what strace looks at."""
    chains = Chains(Path(sys.argv[1]))
    chains.run(int(sys.argv[2]))
    chains.close()


if __name__ == "__main__":
    main()
