"""Shared beginnings: what a block's size leaves of them."""

from __future__ import annotations

from functools import cache

import pytest

import kvplan
from kvplan.simulation.prefix.answer import PrefixAnswer
from tests.questions.rows import printed, settled

SHARED = 240


@cache
def _asked() -> PrefixAnswer:
    """Requests of 600 tokens behind one system prompt, at a hybrid model of such a block."""
    made = [[*range(SHARED), *range(1000 * i, 1000 * i + 360)] for i in range(1, 9)]
    return kvplan.prefix(made, model="Qwen/Qwen3.5-27B", gpu="h100", gpus=2, offline=True)


ANSWERS = {
    "p108.shared": lambda: _asked().shared.rows[0].tokens,
    "p108.block": lambda: _asked().rule.block_size,
    "p108.hit_tokens": lambda: _asked().reused_tokens,
}
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p108_too_short_is_not_nothing() -> None:
    """That prompts share too little is told from sharing nothing."""
    said = "No prompt shares more than its first 240 tokens, and a block has 784"

    assert [text for text in _asked().warnings if text.startswith(said)]


def test_p110_three_rounds() -> None:
    """The same five prompts in three rounds: two thirds at most, less their last tokens."""
    made = [[i, *range(12_000)] for i in range(5)] * 3
    answer = kvplan.prefix(made)

    assert 66.7 == pytest.approx(100 * answer.hit_rate, abs=0.1)
