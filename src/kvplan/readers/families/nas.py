"""Decoders whose layers a search has shaped one by one: DeciLM and Llama-Nemotron.

nvidia/Llama-3_3-Nemotron-Super-49B-v1, modeling_decilm.py and block_config.py: every block names
its attention (how many query heads share a KV head, or none, or one matrix instead) and its network
(a multiple of the width, or none, or one matrix instead). A norm stands before each that is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.core.units import round_up
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Heads, Mixer, Weights, attention_cache
from kvplan.readers.families.encoder_alone import NOTHING_KEPT

T = TypeVar("T")
KV_HEADS_BY_LAYER = "num_key_value_heads_per_layer"
INNER_MULTIPLE = 256
MOST_MULTIPLE = 1000  # no network is near that many times as wide as its model


class NemotronNas(Decoder):
    """Blocks by ``block_configs``."""

    named_head_dim = False

    def mixers(self, c: Config) -> Stack[Mixer]:
        """The attention of every block."""
        return self.shaped(c, "attention", lambda shape: self.shaped_attention(c, shape))

    def networks(self, c: Config) -> Stack[Weights]:
        """The network of every block."""
        return self.shaped(c, "ffn", lambda shape: self.shaped_network(c, shape))

    def block_norms(self, c: Config) -> Weights:
        """None by itself: a norm belongs to what it stands before."""
        return ()

    def shaped(self, c: Config, part: str, build: Callable[[Config], T]) -> Stack[T]:
        """One part of every block, each distinct shape built once."""
        blocks, count = c.value("block_configs"), self.depth(c)
        if not isinstance(blocks, list) or len(blocks) != count:
            raise BadFile(f"The config's block_configs is not a list of {count} blocks.")
        shapes = [part_of(block, part) for block in blocks]
        names = [str(shape) for shape in shapes]
        path = f"block_configs.{part}"
        distinct = dict(zip(names, shapes, strict=True))
        built = {name: build(Config(shape, c.model_type, path)) for name, shape in distinct.items()}
        return Stack.named(names, built)

    def shaped_attention(self, c: Config, shape: Config) -> Mixer:
        """Attention, one matrix, or nothing."""
        hidden = self.hidden(c)
        if shape.flag("no_op"):
            return Mixer(NOTHING_KEPT, ())
        if shape.flag("replace_with_linear"):
            matrix = parts.linear(w.OUTPUT, hidden, hidden, c.flag("attention_bias"))
            return Mixer(NOTHING_KEPT, matrix + parts.norm(hidden))
        query = c.whole("num_attention_heads")
        kv = max(1, query // shape.whole("n_heads_in_group"))
        dim = max(1, hidden // query)
        heads = Heads(query, kv, dim, dim)
        window = shape.whole("window_length") if shape.has("window_length") else None
        weights = self.attention_weights(c, heads) + parts.norm(hidden)
        return Mixer((attention_cache(heads, window),), weights)

    def shaped_network(self, c: Config, shape: Config) -> Weights:
        """A network as wide as the multiple says, one matrix, or nothing."""
        hidden, bias = self.hidden(c), c.flag("mlp_bias")
        if shape.flag("no_op"):
            return ()
        if shape.flag("replace_with_linear"):
            return parts.linear(w.MLP_OUT, hidden, hidden, bias) + parts.norm(hidden)
        multiple = shape.number("ffn_mult")
        if not 0 < multiple < MOST_MULTIPLE:
            raise BadFile(f"The config's block_configs.ffn.ffn_mult is {multiple}: no width.")
        inner = round_up(int(2 * multiple * hidden / 3), INNER_MULTIPLE)
        return parts.mlp(hidden, inner, bias=bias) + parts.norm(hidden)


def part_of(block: object, part: str) -> dict[str, Any]:
    """One part of a block.

    Raises:
        BadFile: the block is not an object, or has no such object.
    """
    shape = block.get(part) if isinstance(block, dict) else None
    if not isinstance(shape, dict):
        raise BadFile(f"A block of the config's block_configs has no {part}.")
    return shape


class DeciLm(Decoder):
    """DeciLM: Llama with a number of KV heads for each layer (Deci/DeciLM-7B)."""

    named_head_dim = False
    mlp_bias = False

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One attention a number of KV heads."""
        return mixers_by_kv_heads(self, c)


def mixers_by_kv_heads(family: Decoder, c: Config) -> Stack[Mixer]:
    """A family's attention, once for each number of KV heads that the config lists.

    modeling_decilm.py, DeciLMAttention; the first DeciLM has the type ``llama``.

    Raises:
        BadFile: the list does not have a number for each layer.
    """
    numbers, count = c.wholes(KV_HEADS_BY_LAYER, least=1), family.depth(c)
    if len(numbers) != count:
        raise BadFile(
            f"The config's {KV_HEADS_BY_LAYER} has {len(numbers)} layers and "
            f"num_hidden_layers is {count}."
        )
    usual = family.heads(c)
    shapes = {kv: usual._replace(kv=kv) for kv in dict.fromkeys(numbers)}
    built = {
        kv: Mixer((attention_cache(heads),), family.attention_weights(c, heads))
        for kv, heads in shapes.items()
    }
    return Stack.named(numbers, built)
