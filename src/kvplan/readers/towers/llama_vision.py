"""The vision encoders of Llama 3.2 and Llama 4.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit

# models/mllama/configuration_mllama.py, MllamaVisionConfig.__post_init__.
ASPECT_RATIOS = 8


def llama4(c: Config) -> Weights:
    """models/llama4/modeling_llama4.py, Llama4VisionModel, its pixel-shuffle adapter included."""
    width, patch = c.whole("hidden_size"), c.whole("patch_size")
    inner, out = c.whole("intermediate_size"), c.whole("projector_output_dim")
    return (
        *parts.linear("", c.whole("num_channels") * patch**2, width),
        *parts.scalar(width),
        *parts.embedding((c.whole("image_size") // patch) ** 2 + 1, width),
        *parts.norm(width, "layer", 2),
        *vit.blocks(width, inner, c.layers()),
        *parts.linear("", inner, c.whole("projector_input_dim")),
        *parts.linear("", out, out),
    )


def mllama(c: Config) -> Weights:
    """models/mllama/modeling_mllama.py, MllamaVisionModel.

    Positions of patches and of tiles, each gated, then plain blocks and blocks with two gates.
    """
    width, patch = c.whole("hidden_size"), c.whole("patch_size")
    patches = (c.whole("image_size") // patch) ** 2 + 1
    tiled = c.whole("max_num_tiles") * width
    ratios = _aspect_ratios(c) + 1
    plain, gated = c.layers(), c.layers("num_global_layers")
    return (
        *parts.convolution("", c.whole("num_channels"), width, patch, patch, bias=False),
        *parts.scalar(width),
        *parts.embedding(patches, width),
        *parts.embedding(ratios, tiled * patches),
        *parts.repeat(parts.embedding(ratios, tiled), 2),
        *parts.scalar(1, 3),
        *parts.norm(width, "layer", 2),
        *vit.blocks(width, c.whole("intermediate_size"), plain + gated, bias=False, mlp_bias=True),
        *parts.scalar(1, 2 * gated),
    )


def _aspect_ratios(c: Config) -> int:
    found = c.value("supported_aspect_ratios")
    if found is None:
        return ASPECT_RATIOS
    if not isinstance(found, list):
        raise BadFile("The config's vision_config.supported_aspect_ratios is not a list.")
    return len(found)
