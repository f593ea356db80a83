"""BLIP's vision transformer, and the Q-Former that reads its patches with learned queries.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def blip(c: Config) -> Weights:
    """models/blip_2/modeling_blip_2.py, Blip2VisionModel: a class token, one norm at the end."""
    width = c.whole("hidden_size")
    return (
        *parts.scalar(width),
        *parts.convolution("", 3, width, *vit.sides(c, "patch_size")),
        *parts.embedding(vit.patch_count(c) + 1, width),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            bias=c.flag("qkv_bias", True),
            out_bias=True,
            mlp_bias=True,
        ),
        *parts.norm(width, "layer"),
    )


def qformer(c: Config, source: int, *, words: bool) -> Weights:
    """Blip2QFormerModel: every ``cross_attention_frequency``-th layer reads vectors of ``source``.

    With ``words`` a layer has a second network for the tokens of an instruction.
    """
    width, depth = c.whole("hidden_size"), c.layers()
    cross = -(-depth // c.whole("cross_attention_frequency"))
    network = parts.mlp(width, c.whole("intermediate_size"), gated=False, bias=True)
    norm = parts.norm(width, "layer")
    return (
        *norm,
        *parts.repeat((*parts.attention(width, 1, 1, width, bias=True), *norm), depth),
        *parts.repeat((*reading(width, source), *norm), cross),
        *parts.repeat((*network, *norm), 2 * depth if words else depth),
    )


def reading(width: int, source: int) -> Weights:
    """An attention whose keys and values come from vectors of another width."""
    return (
        *parts.linear(w.QUERY, width, width, bias=True),
        *parts.linear(w.KEY, source, width, bias=True),
        *parts.linear(w.VALUE, source, width, bias=True),
        *parts.linear(w.OUTPUT, width, width, bias=True),
    )
