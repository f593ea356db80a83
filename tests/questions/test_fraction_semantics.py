"""A fraction of what is free or of the total: how much of a card it takes."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.units import GIB
from tests.questions.ask import fit, pool, size_gib, token_bytes
from tests.questions.rows import printed, settled

TENSORRT: dict[str, Any] = {"engine": "tensorrt-llm", "engine_version": "0.8"}
LLAMA, QWEN = "llama-2-7b-hf", "Qwen/Qwen2.5-0.5B"

ANSWERS = {
    "p027.bytes_per_token": lambda: token_bytes(LLAMA),
    "p027.kv_gib": lambda: (
        pool(LLAMA, kv_pool="1TiB", max_tokens=132608, max_seq_len=5120, **TENSORRT)["bytes"] / GIB
    ),
    "p027.needed_gib": lambda: size_gib(LLAMA, context=4096 + 1024),
    "p029.bytes_per_token": lambda: token_bytes(QWEN),
    "p029.kv_gib": lambda: pool(QWEN, kv_pool="1TiB", max_tokens=395776, **TENSORRT)["bytes"] / GIB,
}
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p027_the_fraction_is_of_what_is_free() -> None:
    """A batch of one does not shrink the cache: the fraction or --max-tokens does."""
    whole = fit(LLAMA, gpu="a100-sxm-80gb", max_batch_size=1, **TENSORRT)
    capped = fit(LLAMA, gpu="a100-sxm-80gb", max_batch_size=1, max_tokens=5120, **TENSORRT)

    assert whole.plan.pool.num_bytes > 50 * GIB
    assert 2.5 == capped.plan.pool.num_bytes / GIB
