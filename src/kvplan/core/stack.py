"""Layers in their order, each distinct one held once.

    kinds = (full, window)        order = (1, 1, 1, 1, 1, 0, 1, …)

A model of 94 layers has two or three distinct ones, so every sum is over kinds and counts, while
the order is still there for what depends on it (pipeline stages, an engine's groups).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Stack(Generic[T]):
    """Distinct items and, for each place, the index of its item."""

    kinds: tuple[T, ...]
    order: tuple[int, ...]

    @classmethod
    def uniform(cls, item: T, count: int) -> Stack[T]:
        """``count`` times the same item."""
        return cls((item,), (0,) * count)

    @classmethod
    def named(cls, names: Sequence[Name], items: Mapping[Name, T]) -> Stack[T]:
        """One item a name; a KeyError names the one that is not in ``items``."""
        distinct = tuple(dict.fromkeys(names))
        index = {name: place for place, name in enumerate(distinct)}
        return cls(tuple([items[name] for name in distinct]), tuple(map(index.__getitem__, names)))

    @classmethod
    def of(cls, items: Sequence[T]) -> Stack[T]:
        """Any sequence of hashable items."""
        index: dict[T, int] = {}
        order = tuple([index.setdefault(item, len(index)) for item in items])
        return cls(tuple(index), order)

    def counted(self) -> list[tuple[T, int]]:
        """Each distinct item with the number of its places, in order of first appearance."""
        count = self.order.count
        return [(kind, count(place)) for place, kind in enumerate(self.kinds)]

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[T]:
        kinds = self.kinds
        return (kinds[place] for place in self.order)

    def __getitem__(self, place: int) -> T:
        return self.kinds[self.order[place]]
