"""Configs in the form of mamba_ssm: figures of transformers' own classes for the same layers."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadFile
from kvplan.core.formats import FORMATS
from kvplan.readers.hf_config import read_config

SMALL: dict[str, Any] = {
    "d_model": 768, "n_layer": 24, "vocab_size": 50277, "pad_vocab_size_multiple": 16,
}  # fmt: skip


@pytest.mark.parametrize(
    ("ssm", "parameters", "expected"),
    [({"layer": "Mamba2"}, 128_989_632, 19_218_432), ({}, 129_141_504, 2_654_208)],
)
def test_state_spaces(ssm: dict[str, Any], parameters: int, expected: int) -> None:
    """Mamba 2 and, without a layer's name, Mamba."""
    model = read_config({**SMALL, "ssm_cfg": ssm})

    assert model.weights is not None
    assert parameters == model.weights.parameters
    assert expected == model.curve(FORMATS["bf16"]).bytes(100)


def test_attention_in_the_blocks_named() -> None:
    """Keys and values, and a convolution over queries, keys and values."""
    attention = {"num_heads": 12, "num_heads_kv": 4, "head_dim": 64, "d_conv": 4}
    model = read_config(
        {**SMALL, "ssm_cfg": {"layer": "Mamba2"}, "attn_layer_idx": [3, 9], "attn_cfg": attention}
    )
    kept = {layer.kind: count for layer, count in model.layers()}

    assert {"recurrent_state": 22, "full_attention": 2, "convolution_state": 2} == kept
    assert 2 * 2 * 4 * 64 * 2 == model.curve(FORMATS["bf16"]).per_token


def test_other_files_without_a_type_are_refused() -> None:
    """Only ``ssm_cfg`` tells a type."""
    with pytest.raises(BadFile, match="names no model_type"):
        read_config(SMALL)


@pytest.mark.parametrize(
    ("key", "value"),
    [("ssm_cfg", 5), ("attn_layer_idx", "x"), ("n_layer", 10**9), ("d_model", -1)],
)
def test_wrong_values_name_their_key(key: str, value: object) -> None:
    """In a sentence."""
    with pytest.raises(BadFile, match=key):
        read_config({**SMALL, "ssm_cfg": {}, key: value})
