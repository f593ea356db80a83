"""Wav2vec 2 and what starts like it: convolutions over samples, convolved positions, blocks.

models/wav2vec2/modeling_wav2vec2.py (transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers.vit import encoder

HALF_A_MINUTE = 30 * 16_000  # samples; the class has no longest input


def wav2vec2(c: Config) -> Weights:
    """Wav2Vec2Model, with its adapters where switched on."""
    width = c.whole("hidden_size")
    return (
        *convolutions(c),
        *projection(c, width),
        *mask(c, width),
        *positions(c, width),
        *encoder(c),
        *attention_adapters(c, width),
        *adapter(c, width),
    )


def tokens(c: Config) -> int:
    """Frames that half a minute of sound becomes."""
    frames = HALF_A_MINUTE
    for kernel, stride in zip(
        c.wholes("conv_kernel", least=1), c.wholes("conv_stride", least=1), strict=False
    ):
        frames = max(0, frames - kernel) // stride + 1
    if c.flag("add_adapter"):
        kernel, stride = c.whole("adapter_kernel_size"), c.whole("adapter_stride")
        for _ in range(c.layers("num_adapter_layers")):
            frames = max(0, frames + 2 - kernel) // stride + 1
    return frames


def convolutions(c: Config) -> Weights:
    """A norm after each convolution, or after the first alone (Wav2Vec2FeatureEncoder).

    Raises:
        BadFile: lists of different lengths, or a kind of norm that the class does not know.
    """
    outs, kernels = c.wholes("conv_dim", least=1), c.wholes("conv_kernel", least=1)
    if not outs or len(outs) != len(kernels):
        raise BadFile("The config's conv_dim and conv_kernel are empty or differ in length.")
    kind = c.text("feat_extract_norm")
    if kind not in ("group", "layer"):
        raise BadFile(f"The config's feat_extract_norm is {kind[:40]!r}, not 'group' or 'layer'.")
    found: Weights = ()
    for into, out, kernel in zip((1, *outs), outs, kernels, strict=False):
        found += parts.convolution("", into, out, kernel, bias=c.flag("conv_bias"))
    normed = outs[:1] if kind == "group" else outs
    return found + tuple([Weight(w.NORM, out, 1, 2) for out in normed])


def projection(c: Config, width: int) -> Weights:
    """A norm, and a projection to the model's width."""
    last = c.wholes("conv_dim", least=1)[-1]
    return parts.norm(last, "layer") + parts.linear("", last, width, bias=True)


def mask(c: Config, width: int) -> Weights:
    """What stands for a masked frame, where any is masked in training."""
    masked = c.number("mask_time_prob", 0) > 0 or c.number("mask_feature_prob", 0) > 0
    return parts.scalar(width) if masked else ()


def positions(c: Config, width: int) -> Weights:
    """A grouped convolution under weight norm: a length for each place of its kernel beside it."""
    kernel, groups = c.whole("num_conv_pos_embeddings"), c.whole("num_conv_pos_embedding_groups")
    return parts.convolution("", width, width, kernel, groups=groups) + parts.scalar(kernel)


def attention_adapters(c: Config, width: int) -> Weights:
    """A norm and two projections a block (Wav2Vec2AttnAdapterLayer)."""
    if not c.has("adapter_attn_dim") or not c.flag("do_stable_layer_norm"):
        return ()
    network = parts.mlp(width, c.whole("adapter_attn_dim"), gated=False, bias=True)
    return parts.repeat(parts.norm(width, "layer") + network, c.layers())


def adapter(c: Config, width: int) -> Weights:
    """Gated convolutions of stride two, at another width where the file says so."""
    if not c.flag("add_adapter"):
        return ()
    out = c.whole("output_hidden_size", 0, least=0) or width
    one = parts.convolution("", out, 2 * out, c.whole("adapter_kernel_size"))
    widened = parts.linear("", width, out, bias=True) + parts.norm(out, "layer")
    return (*(widened if out != width else ()), *parts.repeat(one, c.layers("num_adapter_layers")))
