"""Rules of caches that no report shows: forms by build, padding, sparse attention, drafts.

Figures are computed by hand from llama.cpp's source (b11434): src/llama-kv-cache*.cpp.
"""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadValue
from kvplan.core.units import MIB
from kvplan.engines.llamacpp.caches import Cache
from tests.engines.aliases import CONFIGS


def caches(model: str, version: str | None = None, **flags: Any) -> dict[str, Cache]:
    source = CONFIGS / model if model.endswith(".json") else model
    plan = kvplan.fit(
        source,
        gpu_memory="10TiB",
        engine="llama.cpp",
        engine_version=version,
        offline=True,
        **flags,
    ).plan
    return {cache.name: cache for cache in plan.layout.caches.announced()}


@pytest.mark.parametrize(
    ("version", "k", "v"),
    [
        ("b5000", 61 * 128 * 192, 61 * 128 * 128),
        ("b6500", 61 * 576, 61 * 512),
        ("b9000", 61 * 576, 0),
    ],
)
def test_latent_rows_by_build(version: str, k: int, v: int) -> None:
    """Every head's keys and values, then the row with its values again, then the row alone."""
    found = caches("deepseek-ai--DeepSeek-V3.json", version, c=4096, np=1, fa="on")["attention"]

    assert (4096 * k * 2, 4096 * v * 2) == (found.k_bytes, found.v_bytes)


@pytest.mark.parametrize(
    ("version", "attention", "cells"),
    [("b6000", "off", 5024), ("b6000", "on", 5120), ("b6900", "on", 5000), ("b9000", "off", 5120)],
)
def test_cells_are_rounded_up_by_build(version: str, attention: str, cells: int) -> None:
    """32 or 256, nothing for some weeks, 256."""
    found = caches("llama-3.1-8b", version, c=5000, np=1, fa=attention)["attention"]

    assert cells == found.cells


def test_values_without_flash_attention_are_as_wide_as_the_widest() -> None:
    """Gemma 4 E4B: windows have 512 elements of K and are padded to the full layers' 1024 of V."""
    found = caches("maxtext--gemma-4-E4B.json", c=8192, np=1, fa="off")["window"]

    assert found.v_bytes == 2 * found.k_bytes


def test_layers_without_heads_are_padded_too() -> None:
    """49 of 80 layers keep keys; all 80 a V of 1024 where values are transposed."""
    found = caches(
        "nvidia--Llama-3_3-Nemotron-Super-49B-v1.json", c=8192, np=1, fa="off"
    )["attention"]  # fmt: skip

    assert (80, 49 * 16 * MIB, 80 * 16 * MIB) == (found.layers, found.k_bytes, found.v_bytes)


def test_indexer_beside_latent_rows() -> None:
    """DeepSeek V3.2: one key of 128 in each of 61 layers, and no V."""
    found = caches("deepseek-ai--DeepSeek-V3.2.json", c=4096, np=1)["indexer"]

    assert (61, 61 * 128 * 2 * 4096, 0) == (found.layers, found.k_bytes, found.v_bytes)


def test_layers_that_borrow_an_indexers_choice_have_none() -> None:
    """GLM-5.2: 21 of 78 layers have an indexer of their own."""
    assert 21 == caches("zai-org--GLM-5.2.json", c=4096, np=1)["indexer"].layers


def test_indexer_beside_keys_and_values() -> None:
    """MiniMax-M3: 57 of 60 layers, each with a K and a V of one head."""
    found = caches("MiniMaxAI--MiniMax-M3.json", c=4096, np=1)["indexer"]

    assert (57, found.k_bytes) == (found.layers, found.v_bytes)


def test_compressed_attention() -> None:
    """DeepSeek V4 Flash at 2 × 32,768: a stream a sequence, K alone, states in float32."""
    found = caches("deepseek-ai--DeepSeek-V4-Flash.json", c=65536, np=2)

    assert (768, 43) == (found["window"].cells, found["window"].layers)
    assert (8192, 256) == (found["csa"].cells, found["hca"].cells)
    assert 21 * 2 * 8192 * 512 * 2 == found["csa"].k_bytes
    assert 0 == sum(cache.v_bytes for name, cache in found.items() if name != "compressor")


def test_windows_that_llama_cpp_does_not_use() -> None:
    """Mistral 7B and Phi 3 keep every token."""
    for model in ("mistralai--Mistral-7B-Instruct.json", "microsoft--Phi-3-mini-4k-instruct.json"):
        assert ["attention"] == list(caches(model, c=8192, np=1))


def test_batch_bounds_the_window() -> None:
    """gpt-oss with batches of 128: 128 + 128 cells."""
    assert 256 == caches("openai--gpt-oss-20b.json", c=32768, np=1, ub=128)["window"].cells


def test_draft_blocks_have_a_context_of_their_own() -> None:
    """Qwen3.5 27B with its MTP block: one layer as long as the main cache, 7 states a slot."""
    found = caches(
        "Qwen--Qwen3.5-27B.json", c=262144, np=1, spec_type="draft-mtp", spec_draft_n_max=6
    )  # fmt: skip

    assert (1, 1024 * MIB) == (found["draft"].layers, found["draft"].num_bytes)
    assert 7 * 149.625 * MIB == found["recurrent"].num_bytes


def test_a_row_that_no_block_divides() -> None:
    """The type and the width are named."""
    model = {
        "model_type": "llama", "hidden_size": 120, "num_attention_heads": 6, "vocab_size": 100,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 64,
    }  # fmt: skip

    with pytest.raises(BadValue, match=r"q8_0 stores 32 elements a block, .* 40 elements"):
        kvplan.fit(model, gpu_memory="1GiB", engine="llama.cpp", c=2048, ctk="q8_0")


def test_values_below_16_bits_need_flash_attention() -> None:
    """As the server refuses it."""
    with pytest.raises(BadValue, match="--cache-type-v q8_0 needs flash attention"):
        caches("llama-3.1-8b", "b5000", c=4096, ctv="q8_0")
