"""A prompt's cache on its way from the card that computed it to the one that decodes."""

from __future__ import annotations

import pytest

import kvplan
from kvplan.planning.speed.transfer import disaggregated
from tests.questions.ask import fit
from tests.questions.rows import Figure, printed, settled

QWEN = "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"
PROMPT = 7500
LINK = 100 * 10**9 // 8  # 100 Gb/s


def _bytes() -> Figure:
    return kvplan.size(QWEN, context=PROMPT, offline=True).bytes(PROMPT)


def _one_hop_ms() -> Figure:
    plan = fit(QWEN, gpu="a100-sxm-80gb", context="32k").plan
    moved = disaggregated(plan, plan, prompt=PROMPT, output=100, batch=1, link_bytes_per_s=LINK)
    assert moved is not None
    return moved.transfer_s * 1e3


ANSWERS = {"p141.bytes": _bytes, "p141.ms_one_hop": _one_hop_ms}
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p141_a_hop_is_shorter_than_the_prompt() -> None:
    """What is sent layer by layer hides behind the prefill where the link is the faster."""
    plan = fit(QWEN, gpu="a100-sxm-80gb", context="32k").plan
    moved = disaggregated(plan, plan, prompt=PROMPT, output=100, batch=1, link_bytes_per_s=LINK)

    assert moved is not None
    assert moved.transfer_s < moved.prefill_s
    assert moved.ttft_s < moved.prefill_s + moved.transfer_s
