"""`python -m tests.bench.maps`: what one change of a map costs, and one look-up, by kind and size.

The kinds: our `PMap`, a copied `dict`, and `immutables.Map` where that package is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

from statelog.domain.pmap import PMap

SIZES = (50, 500, 5_000, 50_000)
CHANGES, ROUNDS = 1_000, 5

Kind = tuple[Callable[[dict[str, int]], Any], Callable[[Any, str, int], Any]]


def kinds() -> dict[str, Kind]:
    """How each kind is made of a dict, and changed."""
    found: dict[str, Kind] = {
        "PMap": (PMap, lambda map, key, value: map.set(key, value)),
        "dict": (dict, lambda map, key, value: {**map, key: value}),
    }
    try:
        make = import_module("immutables").Map
    except ImportError:
        return found
    return {**found, "immutables": (make, lambda map, key, value: map.set(key, value))}


def changing(kind: Kind, size: int) -> float:
    """Microseconds for one change, in a run of them that keeps only the newest map."""
    make, change = kind
    keys = [f"step-{number}" for number in range(size)]
    map = make(dict.fromkeys(keys, 0))
    changed = [keys[number * 7919 % size] for number in range(CHANGES)]
    start = perf_counter()
    for key in changed:
        map = change(map, key, 1)
    return (perf_counter() - start) / CHANGES * 1e6


def looking_up(kind: Kind, size: int) -> float:
    """Microseconds for one look-up of a key that is there."""
    keys = [f"step-{number}" for number in range(size)]
    map: Mapping[str, int] = kind[0](dict.fromkeys(keys, 0))
    wanted = [keys[number * 7919 % size] for number in range(CHANGES)]
    start = perf_counter()
    for key in wanted:
        map[key]
    return (perf_counter() - start) / CHANGES * 1e6


def main() -> None:
    """Print medians of interleaved rounds."""
    found = kinds()
    for title, measure in (("change", changing), ("look-up", looking_up)):
        print(f"{title + ', µs':>12}", *(f"{size:>10,}" for size in SIZES))
        times = [
            {(name, size): measure(kind, size) for name, kind in found.items() for size in SIZES}
            for _ in range(ROUNDS)
        ]
        for name in found:
            row = (median(each[name, size] for each in times) for size in SIZES)
            print(f"{name:>12}", *(f"{time:>10.2f}" for time in row))


if __name__ == "__main__":
    main()
