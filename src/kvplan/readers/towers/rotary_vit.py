"""Vision transformers with rotary positions: MiniMax M3, Muse, Step 3.7, VideoLLaMA 3.

The rules are those of transformers 5.24.0, in the file that each function names.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def video_llama3(c: Config) -> Weights:
    """Patches and an encoder (models/video_llama_3/modeling_video_llama_3.py)."""
    return (*vit.patches(c, c.whole("hidden_size")), *vit.encoder(c))


def minimax_m3(c: Config) -> Weights:
    """Patches of several frames, a norm before the blocks and none after them.

    models/minimax_m3_vl/modeling_minimax_m3_vl.py.
    """
    width, patch = c.whole("hidden_size"), c.whole("patch_size")
    frames, channels = c.whole("temporal_patch_size"), c.whole("num_channels")
    return (
        *parts.convolution("", channels, width, frames, patch, patch, bias=False),
        *parts.norm(width, "layer"),
        *vit.blocks(width, c.whole("intermediate_size"), c.layers()),
    )


def muse(c: Config) -> Weights:
    """Learned positions too, norms around the blocks (models/muse_glimmer, models/muse_spark)."""
    width = c.whole("hidden_size")
    patch = c.whole("patch_temporal") * 3 * c.whole("patch_size") ** 2
    return (
        *parts.linear("", patch, width),
        *parts.embedding(c.whole("pos_emb_height") * c.whole("pos_emb_width"), width),
        *parts.norm(width, "layer"),
        *vit.encoder(c),
    )


def step(c: Config) -> Weights:
    """Scaled branches, then two convolutions that halve the sides.

    models/step3p7/configuration_step3p7.py: ``width``, ``layers`` and ``heads`` are older names.
    """
    width = c.first_whole("width", "hidden_size")
    depth = c.layers("layers" if c.has("layers") else "num_hidden_layers")
    return (
        *vit.patches(c, width, bias=False),
        *parts.embedding(vit.patch_count(c), width),
        *parts.norm(width, "layer"),
        *vit.blocks(width, int(width * c.number("mlp_ratio")), depth, scales=2),
        *parts.convolution("", width, 2 * width, 3, 3),
        *parts.convolution("", 2 * width, 4 * width, 3, 3),
    )
