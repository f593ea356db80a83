"""Emu 3's tokenizer of images and videos: a VQGAN with convolutions over time.

transformers 5.24.0, models/emu3/modeling_emu3.py, Emu3VQVAE. The decoder's norms are modulated by
the codes (Emu3VQVAESpatialNorm), and attention is as wide as ``hidden_size`` says.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers.vqgan import convolution, levels, residual


def emu3(c: Config) -> Weights:
    """Encoder, codebook with a convolution on each side, decoder."""
    latent, width = c.whole("latent_channels"), c.whole("embed_dim")
    return (
        *encoder(c),
        *parts.convolution("", latent, width, 3, 1, 1),
        *parts.embedding(c.whole("codebook_size"), width),
        *parts.convolution("", width, latent, 3, 1, 1),
        *decoder(c),
    )


def encoder(c: Config) -> Weights:
    """Levels that halve the sides, a middle, then steps over time that halve their number."""
    base, depth, times = c.whole("base_channels"), c.layers("num_res_blocks"), levels(c)
    found, width = convolution(c.whole("in_channels"), base, 3), base
    for level, factor in enumerate(times):
        found += level_blocks(c, level, width, base * factor, depth)
        width = base * factor
        if level < len(times) - 1:
            found += convolution(width, width, 3)
    out = c.whole("latent_channels") * (2 if c.flag("double_latent") else 1)
    return (
        *found,
        *middle(c, width),
        *parts.norm(width, "layer"),
        *convolution(width, out, 3),
        *over_time(c, out, 4),
    )


def decoder(c: Config) -> Weights:
    """The way back: time first, then the levels from the last, one block more in each."""
    base, depth, times = c.whole("base_channels"), c.layers("num_res_blocks") + 1, levels(c)
    codes, latent, width = c.whole("embed_dim"), c.whole("latent_channels"), base * times[-1]
    found = over_time(c, latent, 3) + convolution(latent, width, 3) + middle(c, width, codes)
    for level in reversed(range(len(times))):
        found += level_blocks(c, level, width, base * times[level], depth, codes)
        width = base * times[level]
        if level:
            found += convolution(width, width, 3)
    ending = parts.norm(width, "layer") + modulation(codes, width)
    return found + ending + convolution(width, c.whole("out_channels"), 3)


def level_blocks(
    c: Config, level: int, width: int, out: int, depth: int, codes: int = 0
) -> Weights:
    """``depth`` residual blocks, the first of which changes the width, with attention in some."""
    if not depth:
        return ()
    found = block(width, out, codes) + parts.repeat(block(out, out, codes), depth - 1)
    if level not in c.wholes("attn_resolutions", ()):
        return found
    return found + parts.repeat(attention(c, out, codes), depth)


def middle(c: Config, width: int, codes: int = 0) -> Weights:
    """Two residual blocks and an attention between."""
    return parts.repeat(block(width, width, codes), 2) + attention(c, width, codes)


def block(width: int, out: int, codes: int) -> Weights:
    """A residual block, its two norms modulated where there are codes."""
    return residual(width, out) + modulation(codes, width) + modulation(codes, out)


def attention(c: Config, width: int, codes: int) -> Weights:
    """A norm and four projections."""
    inner = c.whole("hidden_size")
    norm = parts.norm(width, "layer") + modulation(codes, width)
    return norm + parts.attention(inner, 1, 1, inner, bias=True)


def modulation(codes: int, width: int) -> Weights:
    """A scale and a shift of a norm, made of the codes."""
    return parts.repeat(convolution(codes, width, 1), 2) if codes else ()


def over_time(c: Config, width: int, length: int) -> Weights:
    """Convolutions that halve or double the frames, and residual blocks over time."""
    steps = c.whole("temporal_downsample_factor").bit_length() - 1
    cube = parts.convolution("", width, width, 3, 3, 3)
    one = parts.repeat(cube + parts.norm(width, "layer"), 2)
    return (
        *parts.repeat(parts.convolution("", width, width, length, 3, 3), steps),
        *parts.repeat(one, c.layers("num_res_blocks")),
    )
