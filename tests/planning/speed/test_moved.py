"""What a token moves between the products, worked out by hand."""

from __future__ import annotations

import pytest

from kvplan.core import weights as w
from kvplan.core.weights import Weight
from kvplan.planning.speed.moved import dense_bytes, expert_bytes
from kvplan.planning.speed.rates import Rates
from kvplan.planning.speed.terms import linear_s
from tests.planning.speed.plans import plan, work

# One block of hidden size 8: 4 query and 2 key rows, a gated network of 20.
DENSE = (
    Weight(w.QUERY, 4, 8),
    Weight(w.KEY, 2, 8),
    Weight(w.VALUE, 2, 8),
    Weight(w.OUTPUT, 8, 4),
    Weight(w.MLP_IN, 20, 8, 2),
    Weight(w.MLP_OUT, 8, 20),
    Weight(w.NORM, 8),
    Weight(w.EMBEDDING, 1000, 8),
)
# Two of four experts of 6 each.
EXPERTS = (Weight(w.EXPERT_IN, 6, 8, 8, 4), Weight(w.EXPERT_OUT, 8, 6, 4, 2))


@pytest.mark.parametrize(
    ("narrow", "expected"),
    [
        # two norms of 3 × 8; results of 4 + 2 + 2 + 8 + 40 + 8, a gate of 20: 132 of 2 bytes
        (False, 264),
        # and inputs of 2 × 8 to norms' followers, 4 and 20 to the others, of 3 bytes
        (True, 264 + 40 * 3),
    ],
)
def test_a_dense_block(narrow: bool, expected: int) -> None:
    """Norms, results that are read once more, gates; what is narrowed on top."""
    assert expected == dense_bytes(DENSE, 8, 1, narrow=narrow)


@pytest.mark.parametrize(
    ("ranks", "dealt", "expected"),
    [
        # results of 4 × 6, gates of 2 × 6, rows of 2 × 8 that return
        (1, False, (24 + 12 + 16) * 2),
        # cut in two, each rank has half of the inner width and returns whole rows
        (2, False, (12 + 6 + 16) * 2),
        # dealt out, it has half of the experts
        (2, True, (12 + 6 + 8) * 2),
    ],
)
def test_experts(ranks: int, dealt: bool, expected: int) -> None:
    """Every drawn expert returns a row of the hidden size."""
    assert expected == expert_bytes(EXPERTS, ranks, dealt=dealt, narrow=False)


def test_a_bound_moves_nothing() -> None:
    """Ideal rates pass over it no time; one pass adds its seconds for each new token."""
    ideal = work(plan("Qwen/Qwen3-32B", "h200")).ideal

    once = linear_s(ideal, Rates(passes=1.0), 8192) - linear_s(ideal, Rates(), 8192)

    assert ideal.dense_moved_s > 0
    assert pytest.approx(8192 * ideal.dense_moved_s) == once


@pytest.mark.parametrize(
    ("model", "gpu", "kind"),
    [
        ("Qwen/Qwen3-32B", "h100", "16"),
        ("Qwen/Qwen3-32B-FP8", "h100", "fp8 blocks"),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "h100", "fp8"),
        ("Qwen/Qwen3-32B-FP8", "a100", "16"),
    ],
)
def test_blocks_are_a_type_of_their_own(model: str, gpu: str, kind: str) -> None:
    """A scale a block is not a scale a tensor; where a card has no FP8 both are widened."""
    assert kind == work(plan(model, gpu)).ideal.dense_kind
