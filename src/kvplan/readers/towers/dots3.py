"""dots 3 note's encoders: vision blocks whose mixtures grow with depth, audio behind convolutions.

Files named here are transformers 5.24.0's, below ``models/dots3_note/``.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.core.units import ceil_div
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights, layer_kinds
from kvplan.readers.families.latent import DENSE, SPARSE
from kvplan.readers.families.latent_windows import layer_section
from kvplan.readers.towers import vit

# configuration_dots3_note.py, Dots3NoteVisionConfig.__post_init__: experts of each layer.
PYRAMID = (0,) * 25 + (*range(4, 65, 4), 64)

# The same file: names in the released vision section, and in its ``whisper_config``.
OLD_VISION_KEYS = {
    "embed_dim": "hidden_size",
    "num_heads": "num_attention_heads",
    "use_bias": "attention_bias",
}
WHISPER_KEYS = {
    "d_model": "hidden_size",
    "encoder_layers": "num_hidden_layers",
    "encoder_ffn_dim": "intermediate_size",
    "num_mel_bins": "feature_size",
}


def vision(c: Config) -> Weights:
    """Dots3NoteVisionModel: patches with a norm, blocks, a norm, a merger of patches."""
    c = c.with_values(**{new: c.value(old) for old, new in OLD_VISION_KEYS.items() if c.has(old)})
    width = c.whole("hidden_size")
    found: Weights = (*vit.patches(c, width), *parts.norm(width, count=2))
    for network, count in Stack.of(expert_counts(c)).counted():
        found += parts.repeat(vision_network(c, network), count)
    found += parts.repeat(vision_attention(c), c.layers())
    return found + merger(c)


def vision_attention(c: Config) -> Weights:
    """Norms of each head's queries and keys, and the two norms of a block."""
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    bias = c.flag("attention_bias")
    return (
        *parts.attention(width, heads, heads, width // heads, bias=bias, qk_norm="head"),
        *parts.norm(width, count=2),
    )


def vision_network(c: Config, experts: int) -> Weights:
    """A dense network, or as many experts as the layer has."""
    width = c.whole("hidden_size")
    if not experts:
        return parts.mlp(width, c.whole("intermediate_size"), bias=c.flag("mlp_bias"))
    return parts.experts(width, c.whole("moe_intermediate_size"), experts, experts)


def expert_counts(c: Config) -> list[int]:
    """The experts of each layer, 0 where its network is dense.

    Raises:
        BadFile: fewer entries than layers.
    """
    count = c.layers()
    if not c.has("pyramid_num_routed") and c.has("mlp_layer_types"):
        kinds = layer_kinds(c, count, key="mlp_layer_types", known=(DENSE, SPARSE))
        return [layer_experts(c, place) * (kind == SPARSE) for place, kind in enumerate(kinds)]
    listed = c.value("pyramid_num_routed", PYRAMID)
    found = [max(0, routed) for routed in c.wholes("pyramid_num_routed", listed, least=-1)]
    if len(found) < count:
        raise BadFile(f"The vision config gives experts of {len(found)} of {count} layers.")
    return found[:count]


def layer_experts(c: Config, place: int) -> int:
    """The experts that the file gives this layer, else those it gives all."""
    shared = c.whole("num_local_experts")
    if not c.has("per_layer_config"):
        return shared
    return layer_section(c, place).whole("num_local_experts", shared)


def merger(c: Config) -> Weights:
    """PatchMerger: a norm, then two layers over a square of patches."""
    width = c.whole("adapter_in_dim")
    joined = width * c.whole("adapter_merge_size") ** 2
    return (
        *parts.norm(width, "layer"),
        *parts.linear("", joined, joined, bias=True),
        *parts.linear("", joined, c.whole("adapter_out_dim"), bias=True),
    )


def audio(c: Config) -> Weights:
    """Dots3NoteAudioModel: three convolutions that halve, blocks, a norm, an adapter."""
    if c.has("whisper_config"):
        old = c.section("whisper_config")
        c = c.with_values(
            **{new: old.whole(key) for key, new in WHISPER_KEYS.items() if old.has(key)}
        )
    width, channels = c.whole("hidden_size"), c.whole("downsample_hidden_size")
    return (
        *parts.convolution("", 1, channels, 3, 3),
        *parts.repeat(parts.convolution("", channels, channels, 3, 3), 2),
        *parts.linear("", channels * ceil_div(c.whole("feature_size"), 8), width),
        *parts.repeat(audio_block(c), c.layers()),
        *parts.norm(width),
        *adapter(c),
    )


def audio_block(c: Config) -> Weights:
    """Attention without a bias on its keys, a network with biases, two norms."""
    width, inner = c.whole("hidden_size"), c.whole("intermediate_size")
    return (
        *parts.repeat(parts.linear("", width, width, c.flag("attention_bias")), 3),
        *parts.linear("", width, width),
        *parts.mlp(width, inner, bias=True),
        *parts.norm(width, count=2),
    )


def adapter(c: Config) -> Weights:
    """Dots3NoteAudioAdapter: a norm and two layers."""
    width = c.first_whole("whisper_adapter_in_dim", "adapter_input_size")
    out = c.first_whole("whisper_adapter_out_dim", "adapter_output_size", "adapter_out_dim")
    return (
        *parts.norm(width, "layer"),
        *parts.linear("", width, out, bias=True),
        *parts.linear("", out, out, bias=True),
    )
