"""DeepSeek-OCR 2's encoder: SAM's, two convolutions, then a decoder's blocks read by queries.

The rules are those of transformers 5.24.0, models/deepseek_ocr2/modeling_deepseek_ocr2.py.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit
from kvplan.readers.towers.sam import sam

QUERIES = 144 + 256  # DeepseekOcr2VisionModel: one set for 768 pixels a side, one for 1024


def deepseek_ocr2(c: Config) -> Weights:
    """SAM, its projection, Qwen 2's blocks and the queries."""
    encoder = c.section("encoder_config")
    width, heads = encoder.whole("hidden_size"), encoder.whole("num_attention_heads")
    return (
        *convolved(c.section("sam_config")),
        *vit.blocks(
            width,
            encoder.whole("intermediate_size"),
            encoder.layers(),
            bias=True,
            out_bias=False,
            mlp_bias=False,
            norm="rms",
            gated=True,
            heads=heads,
            kv_heads=encoder.whole("num_key_value_heads", heads),
            head_dim=encoder.whole("head_dim", max(1, width // heads)),
        ),
        *parts.norm(width),
        *parts.embedding(QUERIES, width),
    )


def convolved(c: Config) -> Weights:
    """SAM's encoder and two convolutions that halve the sides."""
    widths = c.wholes("downsample_channels", (512, 896), least=1)
    if len(widths) < 2:
        raise BadFile("The config's downsample_channels are not two numbers of channels.")
    first, second = widths[:2]
    return (
        *sam(c),
        *parts.convolution("", c.whole("output_channels"), first, 3, 3, bias=False),
        *parts.convolution("", first, second, 3, 3, bias=False),
    )
