"""What SGLang's pools hold, its verdicts, its layouts, and questions that people asked."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.core.units import GIB
from kvplan.engines.sglang.plan import SGLangPlan
from kvplan.planning.fit import FitAnswer, fit
from tests.engines.aliases import CONFIGS

LLAMA = CONFIGS / "meta-llama--Llama-3.1-8B-Instruct.json"
DEEPSEEK = CONFIGS / "deepseek-ai--DeepSeek-V3.json"
GEMMA = CONFIGS / "maxtext--gemma-4-31B.json"
QWEN_NEXT = CONFIGS / "Qwen--Qwen3-Next-80B-A3B-Instruct.json"


def asked(model: Any, **flags: Any) -> FitAnswer:
    return fit(model, engine="sglang", **{"gpu": "h100-sxm-80gb"} | flags)


def planned(model: Any, **flags: Any) -> SGLangPlan:
    plan = asked(model, **flags).plan
    assert isinstance(plan, SGLangPlan)
    return plan


CELLS = [
    (LLAMA, {}, 131072),
    (LLAMA, {"gpus": 8}, 16384),
    (LLAMA, {"gpus": 16}, 16384),  # 8 KV heads on 16 ranks: one whole head each
    (LLAMA, {"kv_cache_dtype": "fp8_e5m2"}, 65536),
    (LLAMA, {"kv_cache_dtype": "fp4_e2m1"}, 36864),
    (DEEPSEEK, {"gpus": 8}, 70272),  # latent rows are whole on every rank
    (DEEPSEEK, {"gpus": 8, "kv_cache_dtype": "fp8_e4m3"}, 35136),
    (CONFIGS / "deepseek-ai--DeepSeek-V3.2.json", {"gpus": 8}, 70272 + 61 * 132),
    (
        CONFIGS / "deepseek-ai--DeepSeek-V3.2.json",
        {"gpus": 8, "kv_cache_dtype": "fp8_e4m3"},
        48068,
    ),
    (CONFIGS / "deepseek-ai--DeepSeek-V3.2.json", {"gpus": 8, "engine_version": "0.5.2"}, 70272),
]


@pytest.mark.parametrize(("model", "flags", "cell"), CELLS)
def test_cell(model: Any, flags: dict[str, Any], cell: int) -> None:
    """Bytes of a token on one rank, as the budget counts them."""
    assert cell == planned(model, kv_pool="8GiB", **flags).cells.full.budget


def test_indexers_that_are_shared_are_left_out_by_newer_releases() -> None:
    """GLM-5.2: 21 of 78 layers own an indexer; 55,224 to 47,700 B (576 B of fp8 latent)."""
    glm = CONFIGS / "zai-org--GLM-5.2.json"
    flags = {"gpus": 8, "kv_pool": "8GiB", "kv_cache_dtype": "fp8_e4m3"}
    flags |= {"attention_backend": "trtllm_mla"}

    assert 55224 == planned(glm, engine_version="0.5.15", **flags).cells.full.budget
    assert 47700 == planned(glm, engine_version="0.5.18", **flags).cells.full.budget


def test_dp_attention_keeps_whole_heads() -> None:
    """Attention ranks are tp ÷ dp; each copy has a pool of its own."""
    flags = {"gpus": 8, "kv_pool": "8GiB", "enable_dp_attention": True, "dp_size": 4}
    plan = planned(LLAMA, **flags)

    assert (65536, 4) == (plan.cells.full.budget, plan.replicas)


def test_windows_without_a_pool_are_kept_at_full_length() -> None:
    """Gemma 4 has a window pool since 0.5.12; Gemma 3 has none."""
    before, since = (
        planned(GEMMA, kv_pool="8GiB", engine_version=release) for release in ("0.5.9", "0.5.12")
    )
    gemma_3 = planned(CONFIGS / "maxtext--gemma-3-27b-it.json", kv_pool="8GiB")

    assert (0, 50, 0) == tuple(p.cells.window_layers for p in (before, since, gemma_3))


@pytest.mark.parametrize(
    ("strategy", "slots"), [("no_buffer", 3), ("extra_buffer", 5), ("extra_buffer_lazy", 4)]
)
def test_states_cap_the_running_requests(strategy: str, slots: int) -> None:
    """300 slots, some of them for the states of shared prefixes."""
    plan = planned(QWEN_NEXT, gpus=4, max_mamba_cache_size=300, mamba_scheduler_strategy=strategy)

    assert (300 // slots, "state") == plan.running
    assert (300 // slots, "state") == plan.capacity(1024)


def test_capacity_is_whole_pages_in_both_pools() -> None:
    """Each request holds its length in the full pool, and a window and a page in the other."""
    plan = planned(GEMMA, gpus=2, kv_pool="20GiB", swa_full_tokens_ratio=0.1)
    window = plan.cells.window_tokens + plan.settings.page
    first = min(8192, plan.settings.chunk + 1)
    in_window = 1 + (plan.pools.window - first) // window

    assert min(plan.pools.full // 8192, in_window) == plan.capacity(8192).sequences


def test_longest_is_what_fits() -> None:
    """The longest context of n requests fits n, and a page more does not."""
    plan = planned(LLAMA, kv_pool="8GiB")
    found = plan.longest(5)

    assert plan.capacity(found).sequences >= 5 > plan.capacity(found + 1).sequences


def test_weights_that_do_not_fit() -> None:
    """The verdict has the arithmetic and how many cards."""
    answer = asked(CONFIGS / "Qwen--Qwen3-235B-A22B.json")

    assert not answer.fits
    assert "more than 6 such cards" in str(answer.reason)


def test_a_fraction_that_is_too_small() -> None:
    """The verdict names the least that leaves something."""
    answer = asked(LLAMA, mem_fraction_static=0.15)

    assert not answer.fits
    assert "Raise it above 0.191" in str(answer.reason)


def test_the_ledger_adds_up_to_the_card() -> None:
    """Every byte of the card is in a term."""
    answer = asked(QWEN_NEXT, gpus=4)

    assert answer.question.node.memory_bytes == answer.plan.ledger.total


BAD = [
    ({"gpus": 3}, "32 query heads"),
    ({"gpus": 2, "tp_size": 4}, "need 4 cards"),
    ({"engine_version": "0.3.6"}, "0.4.3 to 0.5.23"),
    ({"gpus": 8, "dp_size": 3, "enable_dp_attention": True}, "multiple of 3"),
    ({"kv_cache_dtype": "q8_0"}, "is not one of"),
    ({"draft_kv_heads": 8}, "--draft-head-dim"),
]


@pytest.mark.parametrize(("flags", "said"), BAD)
def test_refusals(flags: dict[str, Any], said: str) -> None:
    """A layout, a release or a value that SGLang does not have."""
    with pytest.raises(BadValue, match=said):
        asked(LLAMA, **flags)


def test_a_newer_release_follows_the_newest_rules() -> None:
    """And says so."""
    plan = planned(LLAMA, engine_version="0.9.0")

    assert planned(LLAMA).pools == plan.pools
    assert "0.9.0 is not known yet" in plan.warnings[0]


class TestQuestions:
    """Public questions with settled figures."""

    def test_two_engines_one_unit(self) -> None:
        """p098: 367,404 tokens × 48,128 B are 16.47 GiB: K and V are printed apart."""
        qwen = CONFIGS / "Qwen--Qwen3-235B-A22B-FP8.json"
        plan = planned(qwen, gpus=4, kv_pool="100GiB", max_total_tokens=367404, page_size=1)

        assert 48128 == plan.cells.full.printed
        assert "K size: 8.23 GB, V size: 8.23 GB" in plan.prints[0]
        assert "16.47" == f"{367404 * plan.cells.full.printed / GIB:.2f}"

    def test_full_length_requests_of_a_printed_pool(self) -> None:
        """p135: 2,086,558 tokens hold 8.15 requests of 256,000."""
        flags = {"kv_pool": "4TiB", "max_total_tokens": 2086558, "context_length": 256000}
        plan = planned(LLAMA, **flags)

        assert "8.15" == f"{plan.pool.max_concurrency:.2f}"

    def test_the_worst_case_bound_of_a_pool(self) -> None:
        """p047: 1,956,160 tokens are 59.7 requests of 32,768; the 50 that it ran are not a rule
        of a release that was read.
        """
        model = CONFIGS / "Qwen--Qwen3.6-27B.json"
        flags = {"kv_pool": "4TiB", "max_total_tokens": 1956160, "context_length": 32768}
        plan = planned(model, max_running_requests=128, **flags)

        assert "59.7" == f"{plan.pool.max_concurrency:.1f}"

    def test_embedding_tables_in_both_units(self) -> None:
        """p097: 248,320 × 5,120 in 16 bits are 2.543 GB, which is 2.368 GiB."""
        num_bytes = 248320 * 5120 * 2

        assert ("2.543", "2.368") == (f"{num_bytes / 1e9:.3f}", f"{num_bytes / GIB:.3f}")
