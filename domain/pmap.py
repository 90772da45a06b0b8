"""A persistent map: setting a key costs two small copies, whatever the size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_FEW = 32


class PMap(Mapping[K, V], Generic[K, V]):
    """An immutable, hashable mapping of two levels: buckets of about the square root of its size.

    `set` returns a new map and shares all but one bucket with the old one. Iteration order is
    stable within a process and otherwise unspecified.
    """

    __slots__ = ("_buckets", "_size")

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        given = items or {}
        self._size = len(given)
        self._buckets = _spread(given, max(1, self._size // _FEW))

    def __getitem__(self, key: K) -> V:
        return self._buckets[hash(key) % len(self._buckets)][key]

    def get(self, key: K, default: V | None = None) -> V | None:  # type: ignore[override]
        """The value of a key, or the default."""
        return self._buckets[hash(key) % len(self._buckets)].get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) % len(self._buckets)]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        for bucket in self._buckets:
            yield from bucket

    def set(self, key: K, value: V) -> PMap[K, V]:
        """This map with one key set."""
        buckets = self._buckets
        at = hash(key) % len(buckets)
        bucket = buckets[at].copy()
        bucket[key] = value
        size = self._size + len(bucket) - len(buckets[at])
        if size > 4 * _FEW and size > len(buckets) * len(buckets) * 4:
            return _rebuilt({**dict(self.items()), key: value})
        new: PMap[K, V] = PMap.__new__(PMap)
        new._size = size
        new._buckets = buckets.copy()
        new._buckets[at] = bucket
        return new

    def __reduce__(self) -> tuple[type[PMap[K, V]], tuple[dict[K, V]]]:
        # buckets go by hash, and text hashes differently in the process that reads this
        return type(self), (dict(self.items()),)

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    def __repr__(self) -> str:
        return f"PMap({dict(self.items())!r})"


def _spread(items: Mapping[K, V], count: int) -> list[dict[K, V]]:
    buckets: list[dict[K, V]] = [{} for _ in range(count)]
    for key, value in items.items():
        buckets[hash(key) % count][key] = value
    return buckets


def _rebuilt(items: dict[K, V]) -> PMap[K, V]:
    new: PMap[K, V] = PMap.__new__(PMap)
    new._size = len(items)
    new._buckets = _spread(items, max(1, int(len(items) ** 0.5)))
    return new
