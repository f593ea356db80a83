"""Emu 3's tokenizer, against the number of parameters that transformers 5.24.0 builds."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.weights import count_parameters
from kvplan.readers.config import Config
from kvplan.readers.hf_config import read_config
from kvplan.readers.towers.emu3 import emu3

OTHER_SHAPE = {
    "hidden_size": 64,
    "base_channels": 32,
    "channel_multiplier": [1, 2, 2],
    "attn_resolutions": [2],
    "num_res_blocks": 3,
    "temporal_downsample_factor": 8,
    "embed_dim": 6,
    "latent_channels": 5,
    "codebook_size": 77,
}
TWO_LATENTS = {"attn_resolutions": [0, 3], "num_res_blocks": 1, "double_latent": True}


@pytest.mark.parametrize(
    ("keys", "parameters"),
    [({}, 270_740_287), (OTHER_SHAPE, 1_778_656), (TWO_LATENTS, 215_916_051)],
    ids=["defaults", "other_shape", "two_latents"],
)
def test_parameters(keys: dict[str, Any], parameters: int) -> None:
    """Every level, convolution over time and modulated norm."""
    assert parameters == count_parameters(emu3(Config(keys, "emu3_vqgan")))[0]


def test_the_whole_model() -> None:
    """The tokenizer beside the text model, whose cache alone is kept."""
    weights = read_config({"model_type": "emu3"}).weights

    assert weights is not None
    assert weights.parameters == 8_762_751_807
