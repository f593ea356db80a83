"""Image tokenizers of the VQGAN kind: levels of residual blocks, attention in some, a codebook.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights

MOST_LEVELS = 16


def janus(c: Config) -> Weights:
    """models/janus/modeling_janus.py, JanusVQVAE: attention in the last level; a decoder too."""
    count = len(levels(c))
    last = [place == count - 1 for place in range(count)]
    return (
        *encoder(c, last),
        *quantiser(c),
        *convolution(c.whole("embed_dim"), c.whole("latent_channels"), 1),
        *decoder(c, last),
    )


def chameleon(c: Config) -> Weights:
    """models/chameleon/modeling_chameleon.py, ChameleonVQVAE: an encoder, codes both ways."""
    vanilla = c.text("attn_type") == "vanilla"
    return (
        *encoder(c, attending(c) if vanilla else [False] * len(levels(c)), middle=vanilla),
        *quantiser(c),
        *convolution(c.whole("embed_dim"), c.whole("latent_channels"), 1),
    )


def apertus(c: Config) -> Weights:
    """models/apertus1p5/modeling_apertus1p5.py, Apertus1p5VisionTokenizerModel."""
    return (*encoder(c, attending(c)), *quantiser(c, "codebook_size"))


def levels(c: Config) -> list[int]:
    """How many times the base channels each level has."""
    found = c.wholes("channel_multiplier", least=1)
    if not 0 < len(found) <= MOST_LEVELS:
        raise BadFile(f"The config's channel_multiplier names {len(found)} levels.")
    return found


def attending(c: Config) -> list[bool]:
    """The levels whose resolution is in ``attn_resolutions``."""
    sizes = c.wholes("attn_resolutions", ())
    side = c.whole("resolution")
    return [side >> level in sizes for level in range(len(levels(c)))]


def encoder(c: Config, attends: Sequence[bool], *, middle: bool = True) -> Weights:
    """Levels that halve the sides, a middle, and a convolution to the latent channels."""
    base, depth = c.whole("base_channels"), c.layers("num_res_blocks")
    found, width = convolution(c.whole("in_channels"), base, 3), base
    for level, (times, attended) in enumerate(zip(levels(c), attends, strict=True)):
        found += blocks(width, base * times, depth, attended)
        width = base * times
        if level < len(attends) - 1:
            found += convolution(width, width, 3)
    latent = c.whole("latent_channels") * (2 if c.flag("double_latent") else 1)
    return (*found, *center(width, middle), *ending(width, latent))


def decoder(c: Config, attends: Sequence[bool]) -> Weights:
    """The same levels from the last, one block more in each."""
    base, depth = c.whole("base_channels"), c.layers("num_res_blocks") + 1
    times = levels(c)
    width = base * times[-1]
    found = (*convolution(c.whole("latent_channels"), width, 3), *center(width, True))
    for level in reversed(range(len(times))):
        found += blocks(width, base * times[level], depth, attends[level])
        width = base * times[level]
        if level:
            found += convolution(width, width, 3)
    return (*found, *ending(width, c.whole("out_channels")))


def blocks(width: int, out: int, depth: int, attended: bool) -> Weights:
    """``depth`` residual blocks, the first of which changes the width."""
    if not depth:
        return ()
    found = residual(width, out)
    if depth > 1:
        found += parts.repeat(residual(out, out), depth - 1)
    return found + parts.repeat(attention(out), depth) if attended else found


def center(width: int, attended: bool) -> Weights:
    """Two residual blocks and an attention between."""
    found = parts.repeat(residual(width, width), 2)
    return found + attention(width) if attended else found


def residual(width: int, out: int) -> Weights:
    """Two norms, two convolutions, and a projection of the shortcut where the width changes."""
    if width == out:
        return parts.norm(out, "layer", 2) + parts.repeat(convolution(out, out, 3), 2)
    return (
        *parts.norm(width, "layer"),
        *convolution(width, out, 3),
        *parts.norm(out, "layer"),
        *convolution(out, out, 3),
        *convolution(width, out, 1),
    )


def attention(width: int) -> Weights:
    """A norm and four projections."""
    return (*parts.norm(width, "layer"), *parts.repeat(convolution(width, width, 1), 4))


def ending(width: int, out: int) -> Weights:
    """A norm and a convolution."""
    return (*parts.norm(width, "layer"), *convolution(width, out, 3))


def quantiser(c: Config, size: str = "num_embeddings") -> Weights:
    """The codebook, and the projection to its width."""
    width = c.whole("embed_dim")
    return (
        *parts.embedding(c.whole(size), width),
        *convolution(c.whole("latent_channels"), width, 1),
    )


def convolution(cols: int, rows: int, side: int) -> Weights:
    """A square convolution with a bias."""
    return parts.convolution("", cols, rows, side, side)
