"""What calculators get wrong: shared latents, explicit head sizes, users of a card."""

from __future__ import annotations

import pytest

from tests.questions.ask import fit, token_bytes
from tests.questions.rows import Figure, printed, settled

DEEPSEEK, QWEN, LLAMA = "deepseek-v3", "qwen3-4b", "llama-3.1-8b"
IN_AND_OUT = 8192 + 2048


def _same_assumptions() -> Figure:
    """64 GB for the cache of 10,000 tokens each."""
    return fit(LLAMA, engine="none", kv_pool="64GB", context=10_000).sequences


def _engine_like() -> Figure:
    """Nine tenths of the card, less the weights and what a start takes besides."""
    answer = fit(LLAMA, gpu="a100-sxm-80gb", gpu_memory_utilization=0.9, context=IN_AND_OUT)
    return answer.sequences


ANSWERS = {
    "p085.bytes": lambda: token_bytes(DEEPSEEK),
    "p086.right": lambda: token_bytes(QWEN),
    "p086.wrong": lambda: token_bytes(QWEN, set={"head_dim": 2560 // 32}),
    "p092.exact_same_assumptions": _same_assumptions,
    "p092.engine_like": _engine_like,
}
EXCEPTIONS = {
    "p085.wrong": "the asker's second formula: twice the latent, as if K and V had one each",
    "p092.naive": "the article's own rounding: 64 GB over 0.00013 GB a token",
}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p085_a_latent_is_no_pair() -> None:
    """K and V share it: the wrong figure is twice the latent without its rotary part."""
    assert settled()["p085.wrong"] == 2 * 61 * 512 * 2
    assert token_bytes(DEEPSEEK) == 61 * (512 + 64) * 2
