"""How many run, how many wait, and who gives way."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import kvplan
from kvplan.core.units import GIB
from kvplan.simulation.simulate import SimulateAnswer
from tests.questions.ask import token_bytes
from tests.questions.rows import printed, settled

MODEL = "Qwen/Qwen2.5-7B-Instruct"
POOL_TOKENS = 77_088


def _closed(prompt: str, output: str, **asked: object) -> SimulateAnswer:
    return kvplan.simulate(
        MODEL,
        gpu="a10g",
        kv_pool=POOL_TOKENS * token_bytes(MODEL),
        prompt=prompt,
        output=output,
        offline=True,
        **asked,
    )


@cache
def _runner() -> SimulateAnswer:
    """256 clients, 5,000 requests that hold 1,070 tokens on average, nothing shared."""
    return _closed("uniform:850-1050", "uniform:100-300", concurrency=256, requests=5000)


def _middle(column: str) -> float:
    """The median of the run's middle half, as a log's lines show it."""
    rows = getattr(_runner().runs[0].outcome.timeline, column)
    return float(np.median(rows[len(rows) // 4 : 3 * len(rows) // 4]))


ANSWERS = {
    "p099.pool_gib": lambda: POOL_TOKENS * token_bytes(MODEL) / GIB,
    "p099.concurrency": lambda: _middle("running"),
}
EXCEPTIONS = {
    "p099.mean_tokens": "77,088 tokens over 72 requests are 1,070.7; the thread cuts the fraction.",
}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p099_the_others_wait_a_minute() -> None:
    """184 of 256 wait, the pool is full, requests give way, and the median waits 60 seconds."""
    found = _runner().figures()

    assert 184 == _middle("waiting")
    assert 1.0 == found["kv_usage"]["peak"]
    assert 60 == pytest.approx(found["ttft_s"]["p50"], rel=0.05)
    assert 0.05 < found["preemptions"] / found["requests"] < 0.2  # 480 of 5,000 in the thread


def test_p099_as_many_clients_as_fit() -> None:
    """With the recommended 72 clients nearly nobody waits or gives way, at the same throughput."""
    fewer = _closed("uniform:850-1050", "uniform:100-300", concurrency=68, requests=2000).figures()
    more = _runner().figures()

    assert fewer["preemptions"] < 20
    assert fewer["ttft_s"]["p50"] < more["ttft_s"]["p50"] / 20
    assert fewer["output_tokens_per_s"] == pytest.approx(more["output_tokens_per_s"], rel=0.05)


def test_p103_nothing_is_reserved_for_an_answer() -> None:
    """More run than the worst case has room for, until they have grown."""
    answer = _closed("100", "2000", concurrency=100, requests=100, max_model_len=4096)
    bound = answer.plan.pool.max_concurrency
    assert bound is not None

    assert bound < 20
    assert 100 == answer.figures()["running"]["max"]
    assert answer.figures()["preemptions"] > 50
