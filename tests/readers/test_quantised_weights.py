"""Weights of quantised checkpoints: recipes whose module names are unusual, and names that tell."""

from __future__ import annotations

import pytest

from kvplan.core.units import GIB
from kvplan.core.weight_formats import format_of_name
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
