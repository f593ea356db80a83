"""Drawn traffic: arrivals of the rate, lengths of the distribution, beginnings that are shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.core.errors import BadValue
from kvplan.simulation.prefix.reading import from_traffic
from kvplan.simulation.prefix.tree import Tree
from kvplan.simulation.synthetic import synthetic
from kvplan.simulation.traffic import Traffic

SIZES: dict[str, Any] = {"requests": 20_000, "prompt": "uniform:800-1000", "output": 200}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"arrivals": "poisson"}, 1.0),
        ({"arrivals": "gamma", "cv": 3.0}, 3.0),
        ({"arrivals": "gamma", "cv": 0.5}, 0.5),
        ({"arrivals": "constant"}, 0.0),
    ],
)
def test_arrivals(options: dict[str, Any], expected: float) -> None:
    """The rate, and the deviation of pauses over their mean."""
    pauses = np.diff(synthetic(rate=4.0, seed=1, **SIZES, **options).arrival_s)

    assert pauses.mean() == pytest.approx(0.25, rel=0.06)
    assert pauses.std() / pauses.mean() == pytest.approx(expected, abs=0.06 * (1 + expected))


def test_a_closed_loop() -> None:
    """All are there at once, and so many are open."""
    traffic = synthetic(concurrency=32, **SIZES)

    assert (32, 0.0) == (traffic.max_in_flight, traffic.arrival_s.max())
    assert (800, 1000) == (traffic.prompt_tokens.min(), traffic.prompt_tokens.max())


def test_the_same_seed_draws_the_same() -> None:
    """And another draws another."""
    one, two, other = (
        synthetic(requests=50, prompt="lognormal:500,1", output="exponential:90", rate=1, seed=seed)
        for seed in (7, 7, 8)
    )

    assert one.prompt_tokens.tolist() == two.prompt_tokens.tolist()
    assert one.arrival_s.tolist() != other.arrival_s.tolist()


def beginnings(traffic: Traffic) -> list[int]:
    """Tokens that each prompt shares with the prompts before it."""
    prompts = from_traffic(traffic)
    tree = Tree(prompts.rows[0].units[:0])
    return [
        prompts.tokens(tree.add(i, row.units, row.kept).length, row.tokens)
        for i, row in enumerate(prompts.rows)
    ]


def test_a_shared_prefix() -> None:
    """Each kind's first prompt shares nothing, all others exactly the prefix."""
    traffic = synthetic(
        requests=100, prompt=1000, output=1, rate=1, shared_prefix=240, prefixes=3, seed=2
    )
    shared = beginnings(traffic)

    assert [0, 240] == sorted(set(shared))
    assert 3 == shared.count(0)


def test_prompts_shorter_than_the_prefix() -> None:
    """Are lengthened, and that is said."""
    traffic = synthetic(requests=10, prompt=100, output=1, rate=1, shared_prefix=240)

    assert [241] * 10 == traffic.prompt_tokens.tolist()
    assert traffic.notes[0].startswith("10 prompts were drawn shorter")


def test_a_chat() -> None:
    """A turn's prompt is all that was said and answered, and waits for the turn before."""
    traffic = synthetic(
        requests=4, turns=4, prompt=100, output=50, rate=1, shared_prefix=32, think=10
    )

    assert [132, 282, 432, 582] == traffic.prompt_tokens.tolist()
    assert [-1, 0, 1, 2] == traffic.after.tolist()
    assert [0.0, 10.0, 10.0, 10.0] == traffic.think_s.tolist()
    # The block in which a turn ends also holds what comes after it, and is another one then.
    assert [0, 128, 272, 432] == beginnings(traffic)


@settings(deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 5), st.integers(1, 300), st.integers(0, 100),
    st.integers(1, 3), st.integers(0, 9),
)  # fmt: skip
def test_chats_hold_together(
    requests: int, turns: int, longest: int, shared: int, prefixes: int, seed: int
) -> None:
    """Turns follow their own conversation, and share with it whole blocks up to its end."""
    traffic = synthetic(
        requests=requests, turns=turns, prompt=f"1-{longest}", output="1-50", rate=2.0,
        think="exponential:3", shared_prefix=shared, prefixes=prefixes, seed=seed,
    )  # fmt: skip
    starts, after = traffic.hash_starts, traffic.after

    assert requests == len(traffic)
    assert (np.diff(traffic.arrival_s) >= 0).all()
    for i in np.flatnonzero(after >= 0):
        before = after[i]
        assert before < i
        own = traffic.hash_ids[starts[i] : starts[i + 1]]
        theirs = traffic.hash_ids[starts[before] : starts[before + 1]]
        assert theirs.tolist() == own[: len(theirs)].tolist()
        assert traffic.prompt_tokens[i] > traffic.prompt_tokens[before]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate": None}, "either --rate or --concurrency"),
        ({"concurrency": 3}, "either --rate or --concurrency"),
        ({"rate": 0.0}, "not above 0"),
        ({"rate": float("nan")}, "not above 0"),
        ({"arrivals": "weekly"}, "No arrivals are 'weekly'"),
        ({"arrivals": "gamma", "cv": 0.0}, "coefficient of variation"),
        ({"requests": 0}, "--requests"),
        ({"requests": 10**9}, "--requests"),
        ({"turns": 0}, "--turns"),
        ({"prompt": "x"}, "--prompt"),
        ({"shared_prefix": 1 << 28}, "longer than any prompt"),
        ({"prompt": 10_000_000, "turns": 100, "requests": 100}, "longer than any prompt"),
        ({"prompt": 100_000, "turns": 50, "requests": 50_000}, "blocks"),
    ],
)
def test_wrong_questions(change: dict[str, Any], said: str) -> None:
    """A sentence that names the flag."""
    asked = {"requests": 10, "prompt": 100, "output": 10, "rate": 1.0} | change
    with pytest.raises(BadValue) as raised:
        synthetic(**asked)

    assert said in str(raised.value)


def test_agents_reuse_nearly_all() -> None:
    """Tool calls behind a long system prompt: most of a prompt was there before."""
    traffic = synthetic(
        requests=200, turns=20, prompt=600, output=120, rate=0.1, shared_prefix=15_000,
        think="exponential:5",
    )  # fmt: skip
    shared = sum(beginnings(traffic))

    assert 0.9 < shared / traffic.prompt_tokens.sum() < 0.99
