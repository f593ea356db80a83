"""Where prompts part though they agree again behind it, and the tokens that this costs.

A prompt that leaves the tree is aligned with the one that went there first; what stands equally in
both behind the parting would have been reused had the difference stood behind it. Prompts that
agree with none of those before them found families of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kvplan.core.units import ceil_div
from kvplan.simulation.prefix.alignment import Landmarks, Run
from kvplan.simulation.prefix.prompts import Prompts
from kvplan.simulation.prefix.tree import Parting

SPAN_TOKENS = 16  # the least run that counts: a block of vLLM's
MOST_FAMILIES = 8  # beginnings that a prompt is compared with at one place
MOST_ALIGNED = 4000  # prompts; of more an even sample is taken and scaled up
MOST_UNITS = 50_000_000  # of the prompts that are aligned; some ten seconds
TOLD = 20  # partings that are told


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A place where ``requests`` prompts go apart.

    ``position`` and ``lost_tokens`` are tokens; None of the latter where ids do not tell what
    stands behind. ``text_a`` and ``text_b`` are what two of them go on with.
    """

    position: int
    message_index: int | None
    text_before: str
    text_a: str
    text_b: str
    requests: int
    lost_tokens: int | None

    def to_dict(self) -> dict[str, Any]:
        """The contract's keys."""
        return {name: getattr(self, name) for name in self.__slots__}


class Aligned(NamedTuple):
    """A prompt, the one it was aligned with, and what is equal behind their parting."""

    row: int
    leader: int
    runs: tuple[Run, ...]


@dataclass(slots=True)
class _Place:
    """All that parts at one node, and the prompts that others are compared with."""

    position: int
    partings: list[Parting] = field(default_factory=list)
    leaders: list[int] = field(default_factory=list)
    lost: float = 0.0
    example: Aligned | None = None

    @property
    def requests(self) -> int:
        """Those that part, and the one that went there first."""
        return 1 + len(self.partings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partings:
    """Breaks, the dearest first; whose beginnings are alike; and how much of it was a sample."""

    breaks: tuple[Break, ...]
    num_breaks: int
    families: tuple[tuple[int, int], ...]  # a prompt and its leader
    sampled: float  # the share of partings that were aligned


def find_partings(prompts: Prompts, partings: Sequence[Parting]) -> Partings:
    """What parts, and what it costs."""
    step = _step(prompts, partings)
    aligner = _Aligner(prompts)
    places = _places(partings, aligner.span)
    tops = {id(one): place for place in places for one in place.partings}
    families: list[tuple[int, int]] = []
    if not prompts.are_blocks:
        for index, parting in enumerate(partings):
            if index % step == 0:
                families += aligner.take(parting, tops[id(parting)], step)
    places.sort(key=lambda place: (-round(place.lost), -place.requests * place.position))
    return Partings(
        breaks=tuple(_break(prompts, place) for place in places[:TOLD]),
        num_breaks=len(places),
        families=tuple(families),
        sampled=1.0 if prompts.are_blocks else 1 / step,
    )


def _step(prompts: Prompts, partings: Sequence[Parting]) -> int:
    """One parting in so many is aligned, so that their number and their units stay bounded."""
    units = sum(len(prompts.rows[parting.row].units) for parting in partings)
    return max(1, ceil_div(len(partings), MOST_ALIGNED), ceil_div(units, MOST_UNITS))


def _places(partings: Sequence[Parting], span: int) -> list[_Place]:
    """Partings by where they are: those within ``span`` units below another are at that one.

    The digits of a time of day part at each digit; that is one place.
    """
    nodes = {id(parting.node) for parting in partings}
    places: dict[int, _Place] = {}
    for parting in partings:
        top = node = parting.node
        while node.parent is not None and parting.node.end - node.parent.end <= span:
            node = node.parent
            top = node if id(node) in nodes else top
        places.setdefault(id(top), _Place(position=top.end)).partings.append(parting)
    return list(places.values())


class _Aligner:
    """Aligns prompts with the leaders at the place where they part."""

    def __init__(self, prompts: Prompts) -> None:
        self.prompts = prompts
        self.span = SPAN_TOKENS * prompts.units_per_token
        self._landmarks: dict[int, Landmarks] = {}

    def of(self, row: int) -> Landmarks:
        """A prompt's windows, kept for the next that is aligned with it."""
        if row not in self._landmarks:
            if len(self._landmarks) >= 64:
                self._landmarks.pop(next(iter(self._landmarks)))
            self._landmarks[row] = Landmarks(self.prompts.rows[row].units, self.span)
        return self._landmarks[row]

    def take(self, parting: Parting, place: _Place, weight: int) -> list[tuple[int, int]]:
        """Align one prompt; it and its leader where they agree behind the parting."""
        place.leaders = place.leaders or [place.partings[0].other]
        best = max((self._align(parting, leader) for leader in place.leaders), key=_units)
        if not best.runs:
            if len(place.leaders) < MOST_FAMILIES:
                place.leaders.append(parting.row)
            if place.example is None:
                place.example = best
            return []
        if place.example is None or _units(best) > _units(place.example):
            place.example = best
        place.lost += weight * _units(best) / self.prompts.units_per_token
        return [(best.row, best.leader)]

    def _align(self, parting: Parting, leader: int) -> Aligned:
        other, at = self.prompts.rows[parting.row].units, parting.position
        return Aligned(parting.row, leader, tuple(self.of(leader).align(other, at, at)))


def _units(aligned: Aligned) -> int:
    return sum(run.length for run in aligned.runs)


def _break(prompts: Prompts, place: _Place) -> Break:
    first = place.partings[0]
    a, b = (first.other, first.row)
    if place.example is not None:
        a, b = place.example.leader, place.example.row
    one, other = prompts.rows[a], prompts.rows[b]
    unit = place.position
    character = prompts.place(other, unit)
    return Break(
        position=prompts.token_at(unit),
        message_index=None if character is None else prompts.message_at(other, character),
        text_before=prompts.shown(one, unit, before=True),
        text_a=prompts.shown(one, unit),
        text_b=prompts.shown(other, unit),
        requests=place.requests,
        lost_tokens=None if prompts.are_blocks else round(place.lost),
    )
