"""What a log says: facts with the lines they are from, gathered by start-up.

    Log ─► Start (one start of an engine) ─► Fact     available_kv_bytes = 39.28 GiB, line 41, TP0
                                          ─► Failure  length_exceeds_pool, line 44, its numbers
                                          ─► flags    --max-model-len 32768

Names are the contract's (``weights_bytes``, ``available_kv_bytes``, ``kv_tokens`` …); sizes are
whole bytes. A pool beside the main one has a name of its own (``swa_kv_tokens``,
``draft_kv_tokens``), so that one name on one rank says one thing, and what was said last counts:
engines print pools of trial runs before the real one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Value = int | float | str | bool

# Of the same name on the same rank so many facts are kept; the last is then replaced, so that a
# server that ran for a year takes no more memory than one that just started.
MOST_OF_A_NAME = 16
MOST_NAMES = 4096
LONGEST_TEXT = 400
UNTOLD = "cause_not_logged"  # a failure's code where a line says that it failed, and not why

# Units by the ending of a name, the first that fits; else a plain figure or a text.
_UNITS = (
    ("_bytes", "bytes"),
    ("_tokens", "tokens"),
    ("_blocks", "blocks"),
    ("_cells", "cells"),
    ("_s", "s"),
    ("max_model_len", "tokens"),
    ("_len", "tokens"),
    ("block_size", "tokens"),
)  # fmt: skip


def unit_of(name: str) -> str:
    """The unit of a fact by its name; empty for counts, shares and texts."""
    return next((unit for ending, unit in _UNITS if name.endswith(ending)), "")


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure or word of a log.

    ``line`` counts from 1; ``rank`` is the worker or device that said it, as its prefix names it
    (``TP0``, ``DP1 TP3``, ``CUDA0``), None where none is named; ``text`` is the line without
    prefixes.
    """

    name: str
    value: Value
    line: int
    rank: str | None = None
    text: str = ""

    @property
    def unit(self) -> str:
        """``bytes``, ``tokens`` … or nothing."""
        return unit_of(self.name)

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``facts``."""
        return {
            "name": self.name, "value": self.value, "unit": self.unit, "line": self.line,
            "rank": self.rank, "text": self.text,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failure:
    """A start-up error that is recognised, with the numbers it states by facts' names.

    Codes are shared by engines: ``no_cache_memory`` (nothing is left for the cache),
    ``length_exceeds_pool`` (one sequence of the maximum length does not fit), ``memory_taken``
    (less is free than asked for), ``out_of_memory`` (an allocation failed),
    ``weights_exceed_memory``, ``cause_not_logged`` (told only where no other is).
    """

    code: str
    line: int
    rank: str | None = None
    text: str = ""
    numbers: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flag:
    """A setting of the start in the engine's own spelling (``--max-model-len``), as a text."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Begin:
    """A new start-up begins with this line; what follows is told of it."""

    version: str | None = None


Found = Fact | Failure | Flag | Begin


@dataclass(slots=True)
class Start:
    """One start of an engine, in the order of its lines."""

    engine: str
    first_line: int
    version: str | None = None
    facts: list[Fact] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    flags: dict[str, Any] = field(default_factory=dict)
    _places: dict[tuple[str, str | None], list[int]] = field(default_factory=dict, repr=False)

    def add(self, found: Found) -> None:
        """Take what a line says; ``Begin`` is the caller's to act on."""
        if isinstance(found, Fact):
            self._add_fact(found)
        elif isinstance(found, Flag):
            if len(self.flags) < MOST_NAMES:
                self.flags[found.name] = found.value
        elif isinstance(found, Failure):
            self._add_failure(found)
        elif found.version:
            self.version = found.version

    def _add_fact(self, fact: Fact) -> None:
        if fact.name == "version":
            self.version = self.version or str(fact.value)
        key = (fact.name, fact.rank)
        places = self._places.get(key)
        if places is None:
            if len(self._places) >= MOST_NAMES:
                return
            places = self._places[key] = []
        if len(places) < MOST_OF_A_NAME:
            places.append(len(self.facts))
            self.facts.append(fact)
        else:
            self.facts[places[-1]] = fact

    def _add_failure(self, failure: Failure) -> None:
        """An error once, though every process that it passes prints its traceback."""
        known = any(
            other.code == failure.code and other.numbers == failure.numbers
            for other in self.failures
        )
        if not known and len(self.failures) < MOST_OF_A_NAME:
            self.failures.append(failure)

    def said(self, name: str) -> Iterator[Fact]:
        """The facts of a name in the order they were printed."""
        return (fact for fact in self.facts if fact.name == name)

    def by_rank(self, name: str) -> dict[str | None, Fact]:
        """What each rank said of a name last."""
        return {fact.rank: fact for fact in self.said(name)}

    def last(self, name: str) -> Fact | None:
        """What was said of a name last, by whichever rank."""
        return max(self.said(name), key=lambda fact: fact.line, default=None)

    def least(self, name: str) -> Fact | None:
        """The least of what the ranks said last: the rank with the smallest pool decides."""
        return min(self.by_rank(name).values(), key=_number, default=None)

    def most(self, name: str) -> Fact | None:
        """The most of what the ranks said last."""
        return max(self.by_rank(name).values(), key=_number, default=None)

    def total(self, name: str) -> int | float | None:
        """The sum of what the ranks or devices said last; None where none said it."""
        found = [_number(fact) for fact in self.by_rank(name).values()]
        return sum(found) if found else None

    def of_rank(self, name: str, rank: str | None) -> Fact | None:
        """What a rank said last, else what was said without a rank, else what any said."""
        said = self.by_rank(name)
        return said.get(rank) or said.get(None) or self.last(name)

    def number(self, name: str) -> int | float | None:
        """The figure that was said last, None where it is none."""
        fact = self.last(name)
        return _number(fact) if fact is not None and not isinstance(fact.value, str) else None


@dataclass(frozen=True, slots=True)
class Log:
    """The starts that a source holds, in order; the last is the one that is explained."""

    source: str
    starts: tuple[Start, ...] = ()
    lines: int = 0
    notes: tuple[str, ...] = ()

    @property
    def start(self) -> Start | None:
        """The last start that says something, None where nothing was recognised."""
        said = [start for start in self.starts if start.facts or start.failures]
        return said[-1] if said else None


def _number(fact: Fact) -> int | float:
    return fact.value if isinstance(fact.value, int | float) else 0
