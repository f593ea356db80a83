"""What the weights take: all experts, not those of a token."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from tests.questions.ask import fit
from tests.questions.rows import printed, settled

DEEPSEEK, QWEN = "deepseek-v3", "Qwen/Qwen3.5-122B-A10B"


def _model(name: str) -> dict[str, Any]:
    found: dict[str, Any] = kvplan.size(name, offline=True).to_dict()["model"]
    return found


ANSWERS = {
    # A byte a parameter, over eight cards.
    "p133.gb_per_gpu": lambda: _model(DEEPSEEK)["parameters"] / 8 / 1e9,
}
EXCEPTIONS = {
    "p130.total_gb": "125.1e9 × 0.58 is a rule of thumb; Q4_K_M's own types give 74.0 GB of the "
    "122.6e9 parameters that transformers has, tested within 2.5%",
    "p130.active_gb": "the same rule of thumb over 10e9 parameters",
}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p130_all_experts_have_to_be_there() -> None:
    """Rated a fit of 33 GB; the file has 74 and does not fit a card of 48 GiB."""
    answer = fit(
        QWEN, engine="llama.cpp", quantization="Q4_K_M", gpu_memory="48GiB", ctx_size=4096,
        n_gpu_layers=99,
    )  # fmt: skip
    ledger = {row["name"]: row["bytes"] for row in answer.to_dict()["ledger"]}
    file_gb = (ledger["weights"] + ledger.get("host_weights", 0)) / 1e9

    assert not answer.fits
    assert file_gb == pytest.approx(72.6, rel=0.025)
    assert file_gb > 33 * 2


def test_p133_eight_cards_are_too_few() -> None:
    """What FP8 leaves in 16 bits comes on top: no block of cache fits."""
    answer = fit(DEEPSEEK, gpu="h800-sxm-80gb", gpus=8)

    assert not answer.fits
    assert "No available memory for the cache blocks" in (answer.reason or "")
    assert "--tensor-parallel-size 16" in (answer.reason or "")
