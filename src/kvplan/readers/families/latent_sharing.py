"""Latent attention whose layers borrow the latent rows of an earlier one: Mistral Large 4.

A layer rotates a part of its key or none of it, keeps its own latent rows or reads another layer's,
and runs an indexer or reuses what an earlier one picked: three choices, each made layer by layer.
Files named here are transformers 5.24.0's, below ``models/mistral_large4/``.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.latent_windows import SharedLatentIndex
from kvplan.core.layers import Layer, SharedCache
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Mixer, Weights
from kvplan.readers.families.indexed import OWN, GlmMoeDsa
from kvplan.readers.families.latent import Shape


class Choice(NamedTuple):
    """How one layer attends."""

    rotates: bool
    keeps: bool
    indexes: bool


class MistralLarge4(GlmMoeDsa):
    """modeling_mistral_large4.py, MistralLarge4TextAttention and MistralLarge4TextIndexer."""

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One mixer for each combination of choices."""
        choices = self.choices(c, self.depth(c))
        return Stack.named(choices, {one: self.chosen(c, one) for one in dict.fromkeys(choices)})

    def choices(self, c: Config, count: int) -> list[Choice]:
        """The choices of every layer (configuration_mistral_large4.py, __post_init__)."""
        indexers = self.indexers(c, count)
        sources = sources_of(c, count)
        if c.has("no_rope_layers"):
            rotates = per_layer(c, "no_rope_layers", count)
        else:
            every = c.whole("no_rope_layer_interval", 4)
            rotates = [(place + 1) % every for place in range(count)]
        return [
            Choice(rotates[place] != 0, sources[place] == place, indexers[place] == OWN)
            for place in range(count)
        ]

    def chosen(self, c: Config, choice: Choice) -> Mixer:
        """The attention of one choice; a key that is not rotated is all in the rank."""
        shape = self.shape(c)
        if not choice.rotates:
            shape = shape._replace(nope=shape.nope + shape.rope, rope=0)
        weights = self.chosen_weights(c, shape, choice.keeps)
        if choice.indexes:
            weights += self.indexer(c, self.hidden(c))
        return Mixer((self.cache(c, shape, choice),), weights)

    def cache(self, c: Config, shape: Shape, choice: Choice) -> Layer:
        """Own rows or none, with the keys of an own indexer or without."""
        index_dim = c.whole("index_head_dim") if choice.indexes else 0
        if choice.keeps:
            return shape.cache(index_dim=index_dim)
        if choice.indexes:
            return SharedLatentIndex(source="latent_attention", index_dim=index_dim)
        return SharedCache(source="latent_attention")

    def shape(self, c: Config) -> Shape:
        """Queries are projected at once."""
        return super().shape(c.with_values(q_lora_rank=0))

    def chosen_weights(self, c: Config, shape: Shape, keeps: bool) -> Weights:
        """Without the projection to the latent rows where they are another layer's."""
        hidden, bias = self.hidden(c), self.says(c, self.attention_bias)
        down = parts.latent_down(hidden, shape.rank, shape.rope, bias=bias) if keeps else ()
        return (
            *down,
            *parts.linear(w.QUERY, hidden, shape.heads * (shape.nope + shape.rope)),
            *parts.latent_up(shape.heads, shape.rank, shape.nope, shape.value),
            *parts.linear(w.OUTPUT, shape.heads * shape.value, hidden, bias),
            *parts.scalar(shape.heads, 2),
        )

    def indexer(self, c: Config, query_width: int) -> Weights:
        """With a norm before its queries, and a scale and a bias for each head's softmax."""
        norm = parts.norm(query_width, "layer")
        scaling = parts.scalar(c.whole("index_n_heads"), 2)
        return super().indexer(c, query_width) + norm + scaling

    def ending(self, c: Config) -> Weights:
        """With the learned exponents of the rotation, one for each of its frequencies."""
        return super().ending(c) + parts.scalar((c.whole("qk_rope_head_dim") + 1) // 2)


def per_layer(c: Config, key: str, count: int) -> list[int]:
    """A list of one whole number for each layer.

    Raises:
        BadFile: fewer of them than layers.
    """
    found = c.wholes(key)
    if len(found) < count:
        raise BadFile(f"The config's {key} has {len(found)} entries and there are {count} layers.")
    return found[:count]


def sources_of(c: Config, count: int) -> list[int]:
    """The layer whose latent rows each layer reads: its own where the file says nothing.

    Raises:
        BadFile: a layer that reads a later one, or one that reads yet another.
    """
    if not c.has("kv_source_layers"):
        return list(range(count))
    found = per_layer(c, "kv_source_layers", count)
    for place, source in enumerate(found):
        if source > place or found[source] != source:
            raise BadFile(
                f"The config's kv_source_layers lets layer {place} read layer {source}, "
                "which keeps no latent rows that are there by then."
            )
    return found
