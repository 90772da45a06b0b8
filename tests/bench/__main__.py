"""`python -m tests.bench [--quick] [--json FILE]`: measure, compare with the goals, say so."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic

from tests.bench import (
    appending,
    auditing,
    chart,
    crowd,
    exploring,
    growing,
    planning,
    rebuilding,
    replaying,
    sizes,
    stepping,
    syncs,
    takeover,
    waking,
)
from tests.bench.facts import facts
from tests.bench.result import Line, table
from tests.bench.rounds import Effort

CACHE = Path(__file__).resolve().parents[2] / ".bench"
"""In the working tree, because temporary folders often lie in memory, where syncs are free."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 when a goal is missed in a full run, else 0."""
    given = _parser().parse_args(arguments)
    with _folder() as folder:
        about = facts(folder)
        print("\n".join(f"{name + ':':15} {value}" for name, value in about.items()), flush=True)
        start = monotonic()
        lines, points = _measured(folder, quick=given.quick)
    print("measuring planning ...", file=sys.stderr, flush=True)
    plans = planning.measure(quick=given.quick)
    growth = planning.growth(quick=given.quick)
    print(f"\n{planning.table(plans)}\n\n{planning.growth_table(growth)}")
    print(f"\n{table(lines)}\n\ntook {monotonic() - start:.0f} s; all times are medians of rounds")
    missed = [line for line in lines if line.reached is False]
    if missed:
        print(f"{len(missed)} of {len(lines)} goals missed", "(quick: only told)" * given.quick)
    if given.json:
        document = {
            "quick": given.quick,
            "facts": about,
            "lines": list(map(asdict, lines)),
            "plans": list(map(asdict, plans)),
            "growth": list(map(asdict, growth)),
            "sizes": points,
        }
        given.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if given.chart:
        given.chart.parent.mkdir(parents=True, exist_ok=True)
        given.chart.write_text(chart.growth(points, sizes.LIMIT), encoding="utf-8")
    return 1 if missed and not given.quick else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer rounds; a missed goal is printed but does not fail, for shared machines drift",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw growth there, as SVG")
    return parser


def _measured(folder: Path, *, quick: bool) -> tuple[list[Line], sizes.Points]:
    points: sizes.Points = {}

    def grown() -> list[Line]:
        lines, found = sizes.measure(folder, Effort(5, 3) if quick else Effort(15, 30), quick=quick)
        points.update(found)
        return lines

    tasks: list[tuple[str, Callable[[], list[Line]]]] = [
        ("B2", lambda: replaying.measure(folder, Effort(5, 5) if quick else Effort(25, 60))),
        ("B3", lambda: appending.measure(folder, Effort(9, 8) if quick else Effort(45, 90))),
        (
            "B4",
            lambda: crowd.measure(
                folder, Effort(1, 5, least=1) if quick else Effort(5, 200), 0.7 if quick else 2.0
            ),
        ),
        (
            "B6",
            lambda: stepping.measure(folder, Effort(3, 10) if quick else Effort(15, 150), CACHE),
        ),
        ("syncs", lambda: [syncs.measure(folder)]),
        (
            "growth",
            lambda: [
                growing.measure(folder, Effort(3, 10) if quick else Effort(5, 120), quick=quick)
            ],
        ),
        (
            "takeover",
            lambda: [takeover.measure(folder, Effort(3, 10) if quick else Effort(9, 60))],
        ),
        ("audit", lambda: [auditing.measure(folder, quick=quick)]),
        ("explore", lambda: [exploring.measure(quick=quick)]),
        (
            "B5",
            lambda: rebuilding.measure(
                folder, Effort(1, 5, least=1) if quick else Effort(5, 90), quick=quick
            ),
        ),
        ("B9", grown),
        ("live", lambda: waking.measure(folder, quick=quick)),
    ]
    lines = []
    for name, task in tasks:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        lines += task()
    return lines, points


@contextmanager
def _folder() -> Iterator[Path]:
    CACHE.mkdir(exist_ok=True)
    folder = Path(mkdtemp(prefix="run-", dir=CACHE))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
