"""ViT and DeiT as encoders: patches behind one or two learned tokens, and a pooler.

models/vit/modeling_vit.py and models/deit/modeling_deit.py (transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers.vit import blocks, patch_count, patches


def vit(c: Config) -> Weights:
    """A class token before the patches."""
    return with_tokens(c, 1)


def deit(c: Config) -> Weights:
    """A class token and one for distillation."""
    return with_tokens(c, 2)


def vit_tokens(c: Config) -> int:
    """Length of the output."""
    return patch_count(c) + 1


def deit_tokens(c: Config) -> int:
    """Length of the output."""
    return patch_count(c) + 2


def with_tokens(c: Config, tokens: int) -> Weights:
    """Tokens, patches, positions for both, blocks, a norm and the pooler."""
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    dim = c.whole("head_dim", max(1, width // heads))
    pooled = c.whole("pooler_output_size", 0, least=0) or width
    return (
        *parts.scalar(width, tokens),
        *patches(c, width),
        *parts.embedding(patch_count(c) + tokens, width),
        *blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            bias=c.flag("qkv_bias"),
            out_bias=True,
            mlp_bias=True,
            heads=heads,
            head_dim=dim,
        ),
        *parts.norm(width, "layer"),
        *parts.linear("", width, pooled, bias=True),
    )
