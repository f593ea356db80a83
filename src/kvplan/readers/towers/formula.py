"""PP-FormulaNet's encoder: Segment Anything's, then two convolutions that halve each side.

models/pp_formulanet/modeling_pp_formulanet.py (transformers 5.24.0), PPFormulaNetVisionModel.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers.sam import sam


def formula(c: Config) -> Weights:
    """The encoder, the convolutions and two projections to the decoder's width."""
    out, middle = c.whole("post_conv_out_channels"), c.whole("post_conv_mid_channels")
    return (
        *sam(c),
        *parts.convolution("", c.whole("post_conv_in_channels"), middle, 3, 3, bias=False),
        *parts.convolution("", middle, out, 3, 3, bias=False),
        *parts.linear("", out, out, bias=True),
        *parts.linear("", out, c.whole("decoder_hidden_size"), bias=True),
    )


def tokens(c: Config) -> int:
    """Patches after both convolutions."""
    side = c.whole("image_size") // c.whole("patch_size")
    for _ in range(2):
        side = (side + 1) // 2
    return side * side
