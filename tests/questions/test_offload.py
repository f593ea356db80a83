"""Host memory behind the pool."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kvplan.core.units import GIB
from tests.questions.ask import fit
from tests.questions.rows import Figure, printed, settled

ASKERS_TOKENS = 409_600  # what the asker took for every number of ranks


def _lmcache(ranks: int) -> dict[str, Any]:
    answer = fit("llama-3.1-8b", gpus=ranks, kv_pool="10GiB", lmcache_max_local_cpu_size=50)
    found: dict[str, Any] = answer.to_dict()["tiers"][0]
    return found


def _tokens(ranks: int) -> Figure:
    return int(_lmcache(ranks)["tokens"])


def _host_gib(ranks: int) -> Figure:
    return float(_lmcache(ranks)["host_bytes"] / GIB)


ANSWERS = {
    **{f"p113.tokens.{ranks}": partial(_tokens, ranks) for ranks in (1, 2, 8)},
    **{f"p113.host_gb.{ranks}": partial(_host_gib, ranks) for ranks in (1, 2, 8)},
}
EXCEPTIONS = {
    "p118.kb_per_token": "measured: 4.93 GB over 36,808 tokens of a hybrid in another layout; vLLM "
    "does not start such a model with the connector that is modelled",
    "p118.ratio": "the same measurement over the card's rate",
}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p113_ranks_add_tokens() -> None:
    """The size is of each rank, and each keeps its own heads: two keep twice as many tokens."""
    assert ASKERS_TOKENS == _tokens(1)
    assert ASKERS_TOKENS != _tokens(2)
