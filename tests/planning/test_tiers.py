"""Host memory behind the pool: bytes of a rank and of a host, tokens, loading beside computing.

The figures follow from each project's own rule, worked out by hand here.
"""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadValue
from kvplan.core.units import GIB
from kvplan.planning.tiers import TierAnswer

H100 = "h100-sxm-80gb"
LLAMA = "llama-3.1-8b"
BY_NUMBER = '{"kv_connector": "OffloadingConnector", "kv_connector_extra_config": {%s}}'


def _tier(model: str = LLAMA, **asked: Any) -> TierAnswer:
    found = kvplan.fit(model, offline=True, **{"gpu": H100, "engine": "vllm", **asked}).tiers
    assert len(found) == 1
    return found[0]


# A block of 16 tokens of Llama 3.1 8B is 2 MiB over all ranks.
OFFLOAD = {
    "one rank": ({"kv_offloading_size": 100}, (100 * GIB, 100 * GIB, 819_200)),
    "the size is of all ranks": (
        {"kv_offloading_size": 100, "gpus": 4},
        (25 * GIB, 100 * GIB, 819_200),
    ),
    "each copy has its own": (
        {"kv_offloading_size": 100, "gpus": 4, "tensor_parallel_size": 2},
        (50 * GIB, 200 * GIB, 819_200),
    ),
    "half the bytes in fp8": (
        {"kv_offloading_size": 100, "kv_cache_dtype": "fp8"},
        (100 * GIB, 100 * GIB, 1_638_400),
    ),
    "bytes by name": (
        {"kv_transfer_config": BY_NUMBER % '"cpu_bytes_to_use": 4194304000'},
        (2_000 << 21, 2_000 << 21, 32_000),
    ),
    "a number of blocks, before bytes": (
        {"engine_version": "0.12.0", "gpus": 2,
         "kv_transfer_config": BY_NUMBER % '"num_cpu_blocks": 1000, "block_size": 64'},
        (1_000 * 4 << 20, 2_000 * 4 << 20, 64_000),
    ),
    "LMCache's size is of each rank": (
        {"lmcache_max_local_cpu_size": 50, "gpus": 2},
        (50 * GIB, 100 * GIB, 819_200),
    ),
    "LMCache by vLLM's size": (
        {"kv_offloading_size": 50, "kv_offloading_backend": "lmcache", "gpus": 2,
         "engine_version": "0.20.1"},
        (25 * GIB, 50 * GIB, 409_600),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "expected"), OFFLOAD.values(), ids=OFFLOAD)
def test_vllm(asked: dict[str, Any], expected: tuple[int, int, int]) -> None:
    """Bytes of a rank, bytes of the host, tokens of one copy."""
    tier = _tier(**asked).tier

    assert expected == (tier.rank_bytes, tier.host_bytes, tier.tokens)


def test_latent_rows_are_kept_once() -> None:
    """DeepSeek V3 on 8 ranks: one copy of 61 rows of 576, in whole pages of the host."""
    once = _tier("deepseek-v3", gpu="h200", gpus=8, kv_offloading_size=800).tier
    before = _tier(
        "deepseek-v3", gpu="h200", gpus=8, kv_offloading_size=800, engine_version="0.25.1"
    ).tier

    assert 800 * GIB // 1_126_400 * 16 == once.tokens
    assert 800 * GIB // (8 * 1_124_352) * 16 == before.tokens


def test_a_size_that_a_version_does_not_take() -> None:
    """To 0.13 the size alone sets no blocks."""
    with pytest.raises(BadValue, match=r"vLLM 0\.12\.0 sets no number of blocks"):
        _tier(kv_offloading_size=100, engine_version="0.12.0")


def test_a_connector_turns_the_hybrid_manager_off() -> None:
    """LMCache keeps full length in every layer, and so does the pool then."""
    with_hybrid = kvplan.fit("gpt-oss-20b", gpu=H100, max_model_len=8192)
    without = kvplan.fit("gpt-oss-20b", gpu=H100, max_model_len=8192, lmcache_max_local_cpu_size=10)

    assert (2, 1) == (len(with_hybrid.plan.pool.groups), len(without.plan.pool.groups))
    assert 49_152 * 256 == without.tiers[0].tier.rank_block_bytes


HICACHE = {
    "twice the card's tokens, and a page": (
        {"max_total_tokens": 100_000},
        (200_001, 200_001 * 131_072),
    ),
    "in whole pages": (
        {"max_total_tokens": 100_000, "page_size": 64},
        (200_000 // 64 * 64, (99_968 * 2 // 64 + 1) * 64 * 131_072),
    ),
    "before the page more": (
        {"max_total_tokens": 100_000, "engine_version": "0.5.2"},
        (200_000, 200_000 * 131_072),
    ),
    "GB of each rank": (
        {"hicache_size": 30, "gpus": 2},
        (30_000_000_000 // 65_536 + 1, (30_000_000_000 // 65_536 + 1) * 65_536),
    ),
}


@pytest.mark.parametrize(("asked", "expected"), HICACHE.values(), ids=HICACHE)
def test_hicache(asked: dict[str, Any], expected: tuple[int, int]) -> None:
    """Tokens, and bytes of a rank."""
    tier = _tier(engine="sglang", enable_hierarchical_cache=True, **asked).tier

    assert expected == (tier.tokens, tier.rank_bytes)


def test_hicache_deals_its_size_to_the_pools() -> None:
    """60 GB are shared out as full tokens and window tokens weigh on the card."""
    answer = kvplan.fit(
        "gpt-oss-20b", gpu=H100, engine="sglang", enable_hierarchical_cache=True, hicache_size=60
    )
    tier = answer.tiers[0].tier

    assert 0 <= tier.rank_bytes - 60_000_000_000 < 3 * 49_152
    assert tier.notes == ()


def test_hicache_is_off_unless_asked() -> None:
    """A ratio alone turns nothing on."""
    assert [] == kvplan.fit(LLAMA, gpu=H100, engine="sglang", hicache_ratio=4).tiers


def test_llama_cpp_keeps_prompts() -> None:
    """8 GiB by default hold two conversations of 32,768 tokens at 4 GiB; a flag asks for more."""
    default = _tier(engine="llama.cpp", ctx_size=32768, context=32768)
    more = _tier(engine="llama.cpp", ctx_size=32768, context=32768, cache_ram=20480)

    assert (2, False) == (default.sequences, default.tier.asked)
    assert (5, True) == (more.sequences, more.tier.asked)


def test_no_prompt_cache_before_it_was_made() -> None:
    """Builds of before October 2025 have none."""
    answer = kvplan.fit(LLAMA, gpu=H100, engine="llama.cpp", engine_version="b6000", ctx_size=8192)

    assert [] == answer.tiers


def test_the_bounds_of_loading() -> None:
    """4 GiB over 63 GB/s beside 2 × 6.98e9 × 32,768 and attention over 989 TFLOPS."""
    loading = _tier(kv_offloading_size=100, context=32768).loading
    assert loading is not None
    layers = 6_979_588_096  # 8,030,261,248 less both tables of 128,256 × 4,096
    attention = 32 * 2 * 32 * (128 + 128) * 32768 * 32769 // 2

    assert 2 * layers * 32768 + attention == loading.recompute_flops
    assert (4 * GIB / 63e9, loading.recompute_flops / 989e12) == (
        loading.load_s,
        loading.recompute_s,
    )
    assert int(4 * GIB / loading.recompute_s) == loading.break_even_bytes_per_s


@pytest.mark.parametrize(
    ("link", "expected"), [("63GB/s", 16), ("8GB/s", 8_576), ("5GB/s", 45_664), ("1GB/s", None)]
)
def test_the_shortest_prefix_that_is_loaded_sooner(link: str, expected: int | None) -> None:
    """A slow link pays for long prefixes alone, as attention grows with the square."""
    loading = _tier(kv_offloading_size=100, host_bandwidth=link).loading

    assert loading is not None
    assert expected == loading.break_even_tokens


def test_without_a_known_link_there_are_no_bounds() -> None:
    """On shared memory nothing is loaded over a link."""
    assert _tier(gpu="gb10", kv_offloading_size=10).loading is None


def test_what_the_json_says() -> None:
    """The tier stands in the answer with what it keeps."""
    row = kvplan.fit(LLAMA, gpu=H100, kv_offloading_size=100, context=32768).to_dict()["tiers"][0]

    assert ("kv_offload", 25, 819_200) == (row["name"], row["sequences"], row["tokens"])
    assert "PCIe 5.0 x16" in row["loading"]["link_source"]


def test_weights_in_host_memory() -> None:
    """10 GiB of each card's layers move to the host, and the pool has them."""
    here, away = (
        kvplan.fit("qwen3-32b", gpu=H100, cpu_offload_gb=size, max_model_len=8192)
        for size in (0, 10)
    )
    rows = {row["name"]: row for row in away.to_dict()["ledger"]}

    assert 10 * GIB == away.plan.ledger.pool_bytes - here.plan.ledger.pool_bytes
    assert (10 * GIB, True) == (
        rows["offloaded_weights"]["bytes"],
        rows["offloaded_weights"]["on_host"],
    )
    assert here.plan.ledger.total == away.plan.ledger.total
    assert 10 * GIB == here.plan.weights_read_bytes - away.plan.weights_read_bytes


def test_tables_stay_on_the_card() -> None:
    """What is asked beyond the layers moves nothing: two tables of 151,936 × 5,120 stay."""
    answer = kvplan.fit("qwen3-32b", gpu=H100, cpu_offload_gb=500, max_model_len=8192)

    assert 2 * 151_936 * 5_120 * 2 <= answer.plan.ledger.terms[0].num_bytes < 3 * GIB


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        (("LMCACHE_MAX_LOCAL_CPU_SIZE=50 vllm serve meta-llama/Llama-3.1-8B -tp 2 "
         """--kv-transfer-config '{"kv_connector": "LMCacheConnectorV1"}'"""), 819_200),
        ("vllm serve meta-llama/Llama-3.1-8B --kv_offloading_size 100", 819_200),
        (("python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B "
         "--enable-hierarchical-cache --hicache-size 30 --tp 2"), 457_764),
    ],
)  # fmt: skip
def test_a_command_line_asks_for_a_tier(started: str, expected: int) -> None:
    """As engines are really started, settings of the environment too."""
    answer = kvplan.fit(from_=started, gpu=H100, offline=True)

    assert [expected] == [found.tier.tokens for found in answer.tiers]
