"""Vision transformers: patches, positions, blocks of attention and MLP, a final norm.

The rules are those of transformers 5.24.0, in the file that each function names.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights


def blocks(
    width: int,
    inner: int,
    depth: int,
    *,
    bias: bool = True,
    out_bias: bool | None = None,
    mlp_bias: bool | None = None,
    norm: str = "layer",
    norms: int = 2,
    gated: bool = False,
    heads: int = 1,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    qk_norm: str = "",
    scales: int = 0,
) -> Weights:
    """``depth`` blocks: attention of the model's width, a network, two norms.

    ``mlp_bias`` and ``out_bias`` default to ``bias``; ``scales`` counts learned scales of the
    residual branches, as wide as the model.
    """
    one = (
        *parts.attention(
            width,
            heads,
            heads if kv_heads is None else kv_heads,
            width // heads if head_dim is None else head_dim,
            bias=bias,
            out_bias=out_bias,
            qk_norm=qk_norm,
        ),
        *parts.mlp(width, inner, gated=gated, bias=bias if mlp_bias is None else mlp_bias),
        *parts.norm(width, norm, norms),
    )
    if scales:
        one += parts.scalar(width, scales)
    return parts.repeat(one, depth)


def sides(c: Config, key: str) -> tuple[int, int]:
    """Height and width of a size that is one number or a pair of them.

    Raises:
        BadFile: an empty list.
    """
    if not c.is_list(key):
        side = c.whole(key)
        return side, side
    pair = c.wholes(key, least=1)
    if not pair:
        raise BadFile(f"The config's {key} is an empty list, not one or two sides.")
    return pair[0], pair[-1]


def patch_count(c: Config) -> int:
    """Whole patches of an image of the configured size."""
    height, width = sides(c, "image_size")
    patch_height, patch_width = sides(c, "patch_size")
    return (height // patch_height) * (width // patch_width)


def patches(c: Config, width: int, *, bias: bool = True) -> Weights:
    """The convolution that turns a patch into a vector."""
    return parts.convolution(
        "", c.whole("num_channels", 3), width, *sides(c, "patch_size"), bias=bias
    )


def encoder(c: Config) -> Weights:
    """Blocks with biases everywhere, and the norm after them."""
    width = c.whole("hidden_size")
    return (*blocks(width, c.whole("intermediate_size"), c.layers()), *parts.norm(width, "layer"))


def plain(c: Config) -> Weights:
    """Patches, positions and an encoder (models/idefics3/modeling_idefics3.py)."""
    width = c.whole("hidden_size")
    return (*patches(c, width), *parts.embedding(patch_count(c), width), *encoder(c))


def siglip(c: Config) -> Weights:
    """SigLIP's vision model (models/siglip/modeling_siglip.py)."""
    return (*plain(c), *pooling_head(c))


def siglip2(c: Config) -> Weights:
    """SigLIP 2's: a linear map of flat patches (models/siglip2/modeling_siglip2.py)."""
    return (*flat_siglip(c), *pooling_head(c))


def flat_siglip(c: Config) -> Weights:
    """SigLIP 2 without its pooling head; ``num_patches`` is the number of positions."""
    width = c.whole("hidden_size")
    patch = c.whole("num_channels") * c.whole("patch_size") ** 2
    return (
        *parts.linear("", patch, width, bias=True),
        *parts.embedding(c.whole("num_patches"), width),
        *encoder(c),
    )


def pooling_head(c: Config) -> Weights:
    """Attention of one learned query over the patches, unless ``vision_use_head`` is off."""
    if not c.flag("vision_use_head", True):
        return ()
    width, inner = c.whole("hidden_size"), c.whole("intermediate_size")
    return (
        *parts.scalar(width),
        *parts.attention(width, 1, 1, width, bias=True),
        *parts.norm(width, "layer"),
        *parts.mlp(width, inner, gated=False, bias=True),
    )
