"""Vision transformers with an end of their own: MiniCPM-V, Molmo 2, Ovis 2.

The rules are those of transformers 5.24.0, in the file that each function names.
"""

from __future__ import annotations

from math import prod

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def minicpm(c: Config) -> Weights:
    """Attention within windows, whose patches are then one (models/minicpmv4_6, minicpm_ocr)."""
    width, inner = c.whole("hidden_size"), c.whole("intermediate_size")
    joined = prod(c.wholes("window_kernel_size", least=1))
    return (
        *vit.plain(c),
        *parts.attention(width, 1, 1, width, bias=True),
        *parts.norm(width, "layer"),
        *parts.norm(width * joined, "layer"),
        *parts.linear("", width * joined, inner * joined, bias=True),
        *parts.linear("", inner * joined, width, bias=True),
    )


def molmo2(c: Config) -> Weights:
    """No norm at the end; older files have other names (models/molmo2/configuration_molmo2.py)."""
    width, patch = c.whole("hidden_size"), c.first_whole("image_patch_size", "patch_size")
    heads, bias = c.whole("num_attention_heads"), c.flag("attention_bias")
    return (
        *parts.embedding(_molmo2_positions(c, patch), width),
        *parts.linear("", patch**2 * c.whole("num_channels"), width, bias=True),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            bias=bias,
            mlp_bias=True,
            heads=heads,
            kv_heads=c.whole("num_key_value_heads", heads),
            head_dim=c.whole("head_dim", max(1, width // heads)),
        ),
    )


def _molmo2_positions(c: Config, patch: int) -> int:
    for key in ("image_num_pos", "num_position_embeddings"):
        if c.has(key):
            return c.whole(key)
    key = "image_default_input_size" if c.has("image_default_input_size") else "image_size"
    sides = c.wholes(key, (378, 378), least=1)
    return prod(side // patch for side in sides[:2])


def ovis2(c: Config) -> Weights:
    """RMS norms and gated networks, then a head over the visual vocabulary (models/ovis2)."""
    width = c.whole("hidden_size")
    words = c.whole("vocab_size") - c.whole("num_visual_indicator_tokens", least=0)
    return (
        *vit.patches(c, width),
        *parts.embedding(vit.patch_count(c), width),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            bias=c.flag("qkv_bias"),
            mlp_bias=c.flag("mlp_bias"),
            norm="rms",
            gated=True,
        ),
        *parts.norm(width, count=2),
        *parts.linear("", width * c.whole("hidden_stride") ** 2, words),
        *parts.norm(words, "layer"),
    )
