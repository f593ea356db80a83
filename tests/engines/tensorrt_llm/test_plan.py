"""What TensorRT-LLM's blocks hold, its windows, its verdicts, and questions that people asked."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.core.units import GIB
from kvplan.engines.tensorrt_llm.plan import TensorRTPlan
from kvplan.planning.fit import FitAnswer, fit
from tests.engines.aliases import CONFIGS

LLAMA = CONFIGS / "meta-llama--Llama-3.1-8B-Instruct.json"


def asked(model: Any, **flags: Any) -> FitAnswer:
    return fit(model, engine="tensorrt-llm", **{"gpu": "h100-sxm-80gb"} | flags)


def planned(model: Any, **flags: Any) -> TensorRTPlan:
    plan = asked(model, **flags).plan
    assert isinstance(plan, TensorRTPlan)
    return plan


CELLS = [
    (LLAMA, {}, 131072),
    (LLAMA, {"gpus": 4, "kv_cache_dtype": "fp8"}, 16384),
    (LLAMA, {"kv_cache_dtype": "nvfp4"}, 36864),
    (LLAMA, {"gpus": 4, "enable_attention_dp": True}, 131072),
    (CONFIGS / "deepseek-ai--DeepSeek-V3.json", {"gpus": 8}, 70272),
    # V is stored as wide as K: 8 full layers of 4 heads and 40 of 8 heads would differ.
    (CONFIGS / "XiaomiMiMo--MiMo-V2-Flash.json", {"gpus": 8, "kv_cache_dtype": "fp8"}, 48 * 384),
]


@pytest.mark.parametrize(("model", "flags", "cell"), CELLS)
def test_cell(model: Any, flags: dict[str, Any], cell: int) -> None:
    """Bytes of a token on one rank."""
    assert cell == planned(model, kv_pool="8GiB", **flags).cells.token


def test_blocks_are_rounded_up() -> None:
    """8 GiB and a token more are a block more."""
    exact = planned(LLAMA, kv_pool=8 * GIB)
    more = planned(LLAMA, kv_pool=8 * GIB + 131072)

    assert (2048, 2049) == (exact.pool.num_blocks, more.pool.num_blocks)


def test_windows_share_the_bytes_evenly() -> None:
    """Each window of the list has an equal part, in whole blocks."""
    plan = planned(LLAMA, kv_pool=8 * GIB, max_attention_window="512,131072")

    assert [(512, 16, 2048), (131072, 16, 2048)] == [
        (pool.window, pool.layers, pool.blocks) for pool in plan.pools
    ]
    assert 16 == plan.pool.groups[0].blocks_per_sequence


def test_a_request_reserves_all_of_its_blocks() -> None:
    """GUARANTEED_NO_EVICT: whole requests, up to the batch."""
    plan = planned(LLAMA, kv_pool=8 * GIB, max_batch_size=16)

    assert (15, "pool") == plan.capacity(4097)
    assert (16, "max_batch_size") == plan.capacity(4000)
    assert 6528 == plan.longest(10)


def test_the_first_pass_of_pytorch() -> None:
    """max_num_tokens 8192: 257 blocks of 32 (a log with 0.56 GiB for 8,224 tokens)."""
    plan = planned(CONFIGS / "openai--gpt-oss-120b.json", kv_pool="4GiB", max_seq_len=9193)

    assert "Allocated 0.56 GiB for max tokens in paged KV cache (8224)" in plan.prints[0]


def test_buffers_that_leave_nothing() -> None:
    """The verdict names what grows with the batch."""
    answer = asked(LLAMA, gpu="rtx-4090", max_batch_size=8192)

    assert not answer.fits
    assert "smaller --max-batch-size" in str(answer.reason)


def test_the_ledger_adds_up_to_the_card() -> None:
    """Every byte of the card is in a term."""
    answer = asked(LLAMA)

    assert answer.question.node.memory_bytes == answer.plan.ledger.total


BAD = [
    ({"gpus": 3}, "32 query heads"),
    ({"gpus": 2, "tp_size": 4}, "need 4 cards"),
    ({"engine_version": "0.4"}, "0.5 to 1.2"),
    ({"max_attention_window": "0"}, "is not from 1"),
]


@pytest.mark.parametrize(("flags", "said"), BAD)
def test_refusals(flags: dict[str, Any], said: str) -> None:
    """A layout, a release or a value that it does not have."""
    with pytest.raises(BadValue, match=said):
        asked(LLAMA, **flags)


class TestQuestions:
    """Public questions with settled figures."""

    def test_the_fraction_is_of_free_memory_whatever_the_batch(self) -> None:
        """p027: 132,608 tokens of 524,288 B are 64.75 GiB; 5,120 tokens need 2.5."""
        llama_2 = CONFIGS / "meta-llama--Llama-2-7b-hf.json"
        flags = {"kv_pool": "1TiB", "max_tokens": 132608, "max_seq_len": 5120}
        plan = planned(llama_2, engine_version="0.8", **flags)

        assert 524288 == plan.cells.token
        assert "Allocated 64.75 GiB" in plan.prints[-1]
        assert 2.5 == plan.sequence_bytes(5120) / GIB

    def test_a_small_model_fills_a_card(self) -> None:
        """p029: 395,776 tokens of 12,288 B are 4.53 GiB."""
        qwen = CONFIGS / "Qwen--Qwen2.5-0.5B.json"
        plan = planned(qwen, engine_version="0.11", kv_pool="1TiB", max_tokens=395776)

        assert 12288 == plan.cells.token
        assert "Allocated 4.53 GiB" in plan.prints[-1]
