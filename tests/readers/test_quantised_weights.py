"""Weights of quantised checkpoints: recipes whose module names are unusual, and names that tell."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.units import GIB
from kvplan.core.weight_formats import format_of_name
from kvplan.readers.hf_config import read_config
from kvplan.readers.open_model import open_model


@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        # Experts beside a dense MLP that the recipe leaves alone.
        ("nvidia/Gemma-4-26B-A4B-NVFP4", 17.0, 18.0),
        # Groups without targets: every linear layer.
        ("Qwen/Qwen3-32B-FP8-Static-PerTensor", 31.0, 33.0),
        # Only the name tells it: 18.14, 5.29 and 8.14 GiB were reported.
        ("Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", 17.8, 18.2),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", 5.1, 5.3),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", 7.9, 8.2),
    ],
)
def test_bytes(model: str, least: float, most: float) -> None:
    """Within what such checkpoints take."""
    weights = open_model(model, offline=True).weights

    assert weights is not None
    assert least <= weights.num_bytes / GIB <= most


LLAMA_1B = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
    "tie_word_embeddings": True,
}  # fmt: skip
AFFINE = {"group_size": 64, "bits": 4}
TABLE, REST = 128256 * 2048, 16 * (2048 * (2048 + 512 + 512 + 2048) + 3 * 2048 * 8192)
NORMS = 33 * 2048 * 2


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # 4 bits, and a scale and a bias of 16 bits each a group of 64: 4.5 bits of every matrix.
        ({"quantization": AFFINE}, (TABLE + REST) * 4.5 / 8 + NORMS),
        ({"quantization": AFFINE, "quantization_config": AFFINE}, (TABLE + REST) * 4.5 / 8 + NORMS),
        # A module with parameters of its own, and one that is left alone.
        (
            {"quantization": AFFINE | {"model.embed_tokens": {"group_size": 64, "bits": 8}}},
            TABLE * 8.5 / 8 + REST * 4.5 / 8 + NORMS,
        ),
        (
            {"quantization": AFFINE | {"model.embed_tokens": False}},
            TABLE * 2 + REST * 4.5 / 8 + NORMS,
        ),
        # A format by name has one scale of 8 bits a group of 32, and no bias.
        (
            {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}},
            (TABLE + REST) * 4.25 / 8 + NORMS,
        ),
    ],
)
def test_bytes_of_mlx(keys: dict[str, Any], expected: float) -> None:
    """What mlx-lm writes: the recipe under either key, without a method's name."""
    model = read_config(LLAMA_1B | keys)

    assert model.weights is not None
    assert (expected, ()) == (model.weights.num_bytes, model.warnings)
    assert model.weights.source.endswith(f"mlx by {list(keys)[-1]}")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen2.5-7B-Instruct-AWQ", "int4 in groups of 128"),
        ("Llama-3.3-70B-Instruct-FP8-dynamic", "fp8 per channel"),
        ("x-quantized.w8a8", "int8 per channel"),
        ("gemma-NVFP4-FP8-KV", "nvfp4"),
        ("Qwen3-8B", None),
        ("awqward-8B", None),
    ],
)
def test_names(name: str, expected: str | None) -> None:
    """Whole words alone."""
    found = format_of_name(name, mixture=False)

    assert expected == (found.method if found else None)


def test_source_says_that_the_name_told_it() -> None:
    """A guess is no quantization_config."""
    weights = open_model("Qwen/Qwen2.5-7B-Instruct-AWQ", offline=True).weights

    assert weights is not None
    assert weights.source.endswith("by its name")
