"""Bytes of a token by cache type, against the packings that vLLM's backends publish."""

from __future__ import annotations

import pytest

from kvplan.engines.vllm.cells import head_bytes, index_bytes, latent_bytes


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("auto", 512),
        ("bfloat16", 512),
        ("fp8", 256),
        ("fp8_e5m2", 256),
        ("int8_per_token_head", 264),
        ("int4_per_token_head", 136),
        ("nvfp4", 144),
        ("turboquant_k8v4", 196),
        ("turboquant_4bit_nc", 134),
        ("turboquant_k3v4_nc", 118),
        ("turboquant_3bit_nc", 102),
    ],
)
def test_a_head_of_128(dtype: str, expected: int) -> None:
    """Key and value with their scales; TurboQuant's slots are even."""
    assert head_bytes(dtype, 128, 128, 2) == expected


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("auto", 1152), ("fp8", 576), ("fp8_ds_mla", 656), ("nvfp4_ds_mla", 352)],
)
def test_a_latent_row_of_576(dtype: str, expected: int) -> None:
    """Packed rows have a size of their own."""
    assert latent_bytes(dtype, 576, 2) == expected


def test_an_index_key_of_128() -> None:
    """One byte an element and one float32 scale."""
    assert index_bytes(128) == 132
