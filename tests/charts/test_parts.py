"""What the plots of a plan show is what the plan says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import kvplan
from kvplan.charts import chart_of, parts_of
from kvplan.charts.base import COLOURS, token_ticks
from kvplan.core.errors import BadValue, UnknownName
from kvplan.core.units import GIB, MIB

ASKED = {"gpu": "b200", "context": "8k"}
MODELS = ["llama-3.1-8b", "gemma-3-4b", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"]


def rows(answer: Any, part: str) -> list[dict[str, Any]]:
    """Every row of a plot's data."""

    def data(spec: Any) -> Iterator[list[dict[str, Any]]]:
        if isinstance(spec, dict):
            if isinstance(spec.get("values"), list) and spec["values"][:1] != [None]:
                yield [row for row in spec["values"] if isinstance(row, dict)]
            yield from (found for inner in spec.values() for found in data(inner))
        elif isinstance(spec, list):
            yield from (found for inner in spec for found in data(inner))

    return [row for found in data(chart_of(answer, part).to_dict()) for row in found]


@pytest.mark.parametrize("model", MODELS)
def test_conversations_by_length(model: str) -> None:
    """Each point is the plan's own capacity, the asked length among them."""
    answer = kvplan.fit(model, **ASKED)
    found = {row["tokens"]: row["conversations"] for row in rows(answer, "concurrency")}

    assert answer.sequences == found[8192]
    assert all(answer.plan.capacity(tokens).sequences == n for tokens, n in found.items())


@pytest.mark.parametrize("model", MODELS)
def test_speed_by_batch(model: str) -> None:
    """The band holds the estimate, and nothing is above the bound of its batch."""
    answer = kvplan.fit(model, **ASKED)
    found = [row for row in rows(answer, "speed") if "what" in row]
    bound = {row["conversations"]: row["tokens a second"] for row in found if "slow" not in row}
    estimates = [row for row in found if "slow" in row]

    assert estimates
    for row in estimates:
        assert row["slow"] <= row["tokens a second"] <= row["fast"] <= bound[row["conversations"]]


@pytest.mark.parametrize("model", MODELS)
def test_growth_by_kind(model: str) -> None:
    """The kinds together are the conversation's bytes at each length."""
    answer = kvplan.size(model)
    found: dict[int, float] = {}
    for row in rows(answer, "kinds"):
        held = row["GiB"] * GIB if "GiB" in row else row["MiB"] * MIB
        found[row["tokens"]] = found.get(row["tokens"], 0) + held

    assert {n: answer.bytes(n) for n in found} == pytest.approx(found)


def test_a_card_is_whole() -> None:
    """The bar's terms are the ledger's, and come to the card."""
    answer = kvplan.fit("llama-3.1-8b", **ASKED)
    found = rows(answer, "card")

    assert answer.plan.ledger.total / GIB == pytest.approx(sum(row["GiB"] for row in found))


def test_no_two_colours_are_one() -> None:
    """Ten terms are told apart."""
    assert len(COLOURS) == len(set(COLOURS)) >= 10


@pytest.mark.parametrize("part", parts_of("fit"))
def test_words_for_who_does_not_see(part: str) -> None:
    """Each plot says what is to be seen."""
    assert 40 < len(chart_of(kvplan.fit("gpt2", gpu="l4"), part).to_dict()["description"])


def test_nothing_to_plot() -> None:
    """What does not start has no conversations, and a part that is not there has near ones."""
    answer = kvplan.fit("qwen3-32b", gpu="l4")
    with pytest.raises(BadValue, match="nothing to plot"):
        chart_of(answer, "concurrency")
    with pytest.raises(UnknownName, match="card"):
        chart_of(answer, "cards")


@pytest.mark.parametrize(
    ("longest", "ticks"),
    [(8, [0, 2, 4, 6, 8]), (40960, [0, 8192, 16384, 24576, 32768, 40960]), (0, [0])],
)
def test_ticks_are_round(longest: int, ticks: list[int]) -> None:
    """Powers of two apart, at most six steps."""
    assert ticks == token_ticks(longest)
