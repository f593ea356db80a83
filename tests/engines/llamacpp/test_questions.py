"""Questions of people who run llama.cpp and Ollama, each with the settled figures.

The ids are those of the collected questions (theme gguf, and rows of other themes whose engine is
llama.cpp, ik_llama.cpp or Ollama).
"""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.units import GIB, MIB
from kvplan.engines.llamacpp.plan import LlamaPlan
from tests.engines.aliases import CONFIGS

# Figures of tier-1 rows that no engine plan has, each with its reason.
LEFT_OUT = {
    "p128": "the projector's graph of 8.8 GiB is what that release reserved for one image size; "
    "the cache is here, the encoder is another file",
}


def plan(model: str, *, engine: str = "llama.cpp", version: str | None = None, **flags: Any) -> Any:
    source = CONFIGS / model if model.endswith(".json") else model
    found = kvplan.fit(
        source, gpu_memory="10TiB", engine=engine, engine_version=version, offline=True, **flags
    ).plan
    assert isinstance(found, LlamaPlan)
    return found


def cache_gib(found: LlamaPlan) -> float:
    return found.layout.caches.num_bytes / GIB


@pytest.mark.parametrize(("kind", "expected"), [("q8_0", 7.44), ("f16", 14.0)])
def test_p065_quantised_cache_of_a_million_context(kind: str, expected: float) -> None:
    """Qwen2.5-7B at 262,144 in q8_0 is 30,464 B a token, where the tool said 52 GB."""
    found = plan(
        "Qwen--Qwen2.5-7B.json", ctx_size=262144, parallel=1, cache_type_k=kind, cache_type_v=kind
    )

    assert expected == round(cache_gib(found), 2)


def test_p065_cards_hold_it_but_for_some_layers() -> None:
    """4.4 GiB of weights and 7.4 GiB of cache: 11.5 GiB were measured with 4% on the CPU."""
    found = plan(
        "Qwen--Qwen2.5-7B.json", ctx_size=262144, parallel=1, cache_type_k="q8_0",
        cache_type_v="q8_0", quantization="Q4_K_M",
    )  # fmt: skip
    card = found.layout.fullest

    assert 11.5 < (card.weights + card.cache) / GIB < 11.8


@pytest.mark.parametrize(("kind", "expected"), [("f16", 4.0), ("q8_0", 2.125), ("q4_0", 1.125)])
def test_p066_types_of_an_8b_model(kind: str, expected: float) -> None:
    """Block scales make q8_0 34/64 and q4_0 18/64 of f16."""
    found = plan("llama-3.1-8b", ctx_size=32768, parallel=1, cache_type_k=kind, cache_type_v=kind)

    assert expected == cache_gib(found)


def test_p069_two_caches_with_one_line_each() -> None:
    """Gemma 3 4B at 131,072: 2,560 MiB of full layers and 174 MiB of windows of 1,536 cells."""
    found = plan("maxtext--gemma-3-4b-it.json", ctx_size=131072, parallel=1)
    full, window = found.layout.caches.announced()

    assert (2560, 174, 1536) == (full.num_bytes / MIB, window.num_bytes / MIB, window.cells)


@pytest.mark.parametrize(("version", "expected"), [("b4000", 305.0), (None, 4.29)])
def test_p072_latent_rows_by_build(version: str | None, expected: float) -> None:
    """DeepSeek V3 at 65,536: decompressed in the build of the question, latent rows now."""
    found = plan("deepseek-ai--DeepSeek-V3.json", version=version, ctx_size=65536, parallel=1)

    assert expected == round(cache_gib(found), 2)


@pytest.mark.parametrize(
    ("mla", "attention", "expected"), [(1, "off", 132736), (2, "off", 70272), (0, "off", 4997120)]
)
def test_p073_forms_of_latent_attention(mla: int, attention: str, expected: int) -> None:
    """Bytes a token of ik_llama.cpp's -mla; the thread's 624,640 has an eighth of the heads."""
    found = plan(
        "deepseek-ai--DeepSeek-R1.json", engine="ik_llama.cpp", ctx_size=4096, mla_use=mla,
        flash_attn=attention,
    )  # fmt: skip

    assert expected == found.layout.caches.num_bytes // 4096


def test_p074_no_context_is_the_trained_one() -> None:
    """DeepSeek V2 Lite without -c: 163,840 tokens are 42.19 GiB, and a warning says so."""
    found = plan("deepseek-ai--DeepSeek-V2-Lite.json", version="b3500")

    assert 42.19 == round(cache_gib(found), 2)
    assert any("takes the trained context, 163,840 tokens" in said for said in found.warnings)


@pytest.mark.parametrize(("context", "expected"), [(32768, 384), (4096, 48)])
def test_p075_heads_of_each_layer(context: int, expected: int) -> None:
    """LFM2 1.2B: 6 of 16 layers have heads."""
    found = plan("LiquidAI--LFM2-1.2B.json", ctx_size=context, parallel=1)

    assert expected == (found.pool.k_bytes + found.pool.v_bytes) / MIB


def test_p077_recurrent_layers_keep_no_tokens() -> None:
    """Qwen3.6 27B in Q4_K_M, one slot of 65,536 in q8_0: 17.6 GiB were allocated."""
    found = plan(
        "Qwen--Qwen3.6-27B.json", ctx_size=65536, parallel=1, cache_type_k="q8_0",
        cache_type_v="q8_0", quantization="Q4_K_M",
    )  # fmt: skip

    assert 17.6 == pytest.approx(found.layout.fullest.used / GIB, rel=0.06)


def test_p079_four_cards_and_a_graph_on_each() -> None:
    """A 70B model at 64,000: 19.53 GiB of cache, and 44 of 81 layers placed."""
    found = kvplan.fit(
        CONFIGS / "meta-llama--Llama-3.1-70B-Instruct.json", gpu_memory="22.3GiB", gpus=4,
        engine="ollama", engine_version="0.5.7", num_ctx=64000, OLLAMA_NUM_PARALLEL=1,
        quantization="Q8_0",
    ).plan  # fmt: skip

    assert 19.53 == round(cache_gib(found), 2)
    assert 44 == sum(found.estimate.layers)


@pytest.mark.parametrize(("flags", "expected"), [({}, 1024), ({"parallel": 4}, 256)])
def test_p081_slots_that_share_and_slots_apart(flags: dict[str, Any], expected: int) -> None:
    """-c 1024 without -np is one cache of 1,024 cells for four slots; with -np 4 each has 256."""
    found = plan("llama-3.1-8b", ctx_size=1024, **flags)

    assert (4, expected) == (found.pool.slots, found.pool.slot_context)


def test_p081_sharing_is_said() -> None:
    """Four conversations of the whole context do not fit, and a warning says why."""
    found = plan("llama-3.1-8b", ctx_size=1024)

    assert any("4 slots share 1,024 cells" in said for said in found.warnings)
    assert (1, "pool") == tuple(found.capacity(1024))


@pytest.mark.parametrize(("context", "expected"), [(32768, 4.5), (262144, 36.0)])
def test_p088_structure_and_no_heuristic(context: int, expected: float) -> None:
    """36 layers of 8 heads of 128."""
    found = plan("Qwen--Qwen3-8B.json", ctx_size=context, parallel=1)

    assert expected == cache_gib(found)


def test_p128_the_cache_is_the_small_part() -> None:
    """Mistral Small 3.1 at 4,096: 640 MiB."""
    found = plan(
        "mistralai--Mistral-Small-3.1-24B-Instruct-2503.json", engine="ollama", version="0.6.6",
        num_ctx=4096, OLLAMA_NUM_PARALLEL=1,
    )  # fmt: skip

    assert 640 == found.layout.caches.num_bytes / MIB
    assert "p128" in LEFT_OUT
