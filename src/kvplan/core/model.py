"""A model: what each layer keeps, what it weighs, how long a context it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from kvplan.core.curve import Curve
from kvplan.core.formats import Format
from kvplan.core.layers import Layer
from kvplan.core.stack import Stack
from kvplan.core.traits import NO_TRAITS, Traits
from kvplan.core.weights import Weights

Confidence = Literal["verified", "assumed"]
Block = tuple[Layer, ...]
Facts = Mapping[str, tuple[object, str]]


def no_facts() -> Facts:
    """The facts of a source that keeps none."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model as its readers describe it.

    ``blocks`` are the transformer blocks in order; a block may keep several caches (attention
    beside a state, attention over itself and over an encoder). ``facts()`` says where the figures
    came from: a key of the source, its value, and its origin (the file, a class default).
    """

    name: str
    model_type: str
    architecture: str
    source: str
    blocks: Stack[Block]
    weights: Weights | None = None
    max_context_tokens: int | None = None
    vocab_size: int | None = None
    hidden_size: int | None = None
    encoder_tokens: int | None = None
    confidence: Confidence = "verified"
    warnings: tuple[str, ...] = ()
    traits: Traits = NO_TRAITS
    facts: Callable[[], Facts] = no_facts

    def layers(self) -> list[tuple[Layer, int]]:
        """Every distinct cache with the number of layers that keep one, in order of appearance."""
        counts: dict[Layer, int] = {}
        for block, count in self.blocks.counted():
            for layer in block:
                counts[layer] = counts.get(layer, 0) + count
        return list(counts.items())

    def curve(self, fmt: Format) -> Curve:
        """Bytes of one sequence by its length."""
        return Curve(tuple(self.layers()), fmt)

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)
