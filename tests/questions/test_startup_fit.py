"""Whether it starts: what the printed tokens are, and which length is served."""

from __future__ import annotations

import pytest

from kvplan.core.units import GIB
from tests.questions.ask import fit, pool, size_gib, token_bytes
from tests.questions.rows import printed, settled

CHAT = {"engine_version": "0.6", "kv_pool": 229 * 16 * 524_288, "max_model_len": 4096}
LLAMA_70B = "meta-llama/Llama-3.1-70B"
SERVED = {"engine": "sglang", "page_size": 32, "max_total_tokens": 1633 * 32}

ANSWERS = {
    "p002.tokens": lambda: pool("llama-2-7b-hf", **CHAT)["kv_tokens"],
    "p002.bytes_per_token": lambda: token_bytes("llama-2-7b-hf"),
    "p002.pool_gib": lambda: 229 * pool("llama-2-7b-hf", **CHAT)["bytes_per_block"] / GIB,
    "p010.one_request_gib_bf16": lambda: size_gib(LLAMA_70B, context=131072),
    "p010.one_request_gib_fp8": lambda: size_gib(LLAMA_70B, context=131072, kv_dtype="fp8"),
    "p011.block_tokens": lambda: pool("Qwen/Qwen3.8-27B", **SERVED)["block_size"],
    "p011.servable": lambda: fit("Qwen/Qwen3.8-27B", context_length=97204, **SERVED).max_context,
}
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p002_the_length_that_starts() -> None:
    """The refusal names the tokens that there are and the length to pass."""
    reason = fit("llama-2-7b-hf", **CHAT).reason or ""

    assert "stored in KV cache (3664): pass --max-model-len 3664" in reason


def test_p010_one_request_is_checked_per_rank() -> None:
    """FP8 weights on a card of 80 GB leave less than one request of 131,072 takes."""
    answer = fit(LLAMA_70B, gpu="h100-sxm-80gb", max_model_len=131072, quantization="fp8")

    assert not answer.fits
    assert "40.00 GiB KV cache is needed" in (answer.reason or "")


def test_p011_an_advertised_length_that_the_pool_does_not_hold() -> None:
    """A request as long as advertised does not fit, and the answer says how long one can be."""
    answer = fit("Qwen/Qwen3.8-27B", context_length=97204, context=97204, **SERVED)

    assert (False, 52256) == (answer.fits, answer.max_context)
