"""A fact within a long text, asked for at its end: found or not, by depth and length.

A small model finds few of them with any cache, so that the full cache's own recall stands beside
each: what a cache loses can be told only of what the model can do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvplan.lab.figures import Found
from kvplan.lab.loading import Loaded
from kvplan.lab.quality import Make, read

PLACES: Final = ("castle", "garden", "harbour", "library", "market", "tower", "mill", "bridge")
DIGITS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A text with a fact in it, the question at its end, and the answer's tokens."""

    length: int
    depth: float
    prompt: tuple[int, ...]
    answer: tuple[int, ...]


def needles(
    loaded: Loaded, text: Sequence[int], lengths: Sequence[int], depths: Sequence[float]
) -> list[Needle]:
    """A fact at each depth of each length; ``text`` is what surrounds it."""
    made = []
    for length in lengths:
        for place, depth in enumerate(depths):
            chance = random.Random(f"{length} {depth}")
            name = PLACES[place % len(PLACES)]
            code = "".join(chance.choices("0123456789", k=DIGITS))
            fact = loaded.encode(f"\nThe secret code of the {name} is {code}.\n")
            asked = loaded.encode(f"\nThe secret code of the {name} is")
            room = max(0, length - len(fact) - len(asked))
            before = int(room * depth)
            prompt = (*text[:before], *fact, *text[before:room], *asked)
            answer = tuple(loaded.encode(f" {code}"))
            made.append(Needle(length=length, depth=depth, prompt=prompt, answer=answer))
    return made


def search(
    loaded: Loaded, asked: Sequence[Needle], make: Make, *, observed: bool = False
) -> list[Found]:
    """Each fact asked for through a cache of its own."""
    found = []
    for needle in asked:
        rows = read(loaded, needle.prompt, needle.answer, make, observed)
        hits = [row.is_first for row in rows]
        found.append(
            Found(
                length=needle.length,
                depth=needle.depth,
                whole=all(hits),
                share=sum(hits) / len(hits),
            )
        )
    return found
