"""Names, stars and expressions of quantisation recipes: which share of the layers they name."""

from __future__ import annotations

import time

import pytest

from kvplan.core import weights as w
from kvplan.readers.module_patterns import share


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["self_attn"], 1.0),
        (["q_proj"], 1.0),
        (["attn"], 0.0),
        (["model.layers.0.self_attn.q_proj"], 0.25),
        (["model.language_model.layers.1.self_attn"], 0.25),
        (["model.layers.9.self_attn"], 0.0),
        (["model.layers.1*", "model.layers.3.self_attn*"], 0.5),
        (["model.layers.*.self_attn.*"], 1.0),
        (["re:.*self_attn.*"], 1.0),
        ([r"re:.*\.layers\.2\.self_attn\..*"], 0.25),
        (["re:.*(q_proj|k_proj)"], 1.0),
        (["*"], 0.0),
        (["re:(a+)+$", "re:((", "[", "(?"], 0.0),
    ],
)
def test_share_of_four_layers(patterns: list[str], expected: float) -> None:
    """Whole words, alone or behind a layer's number."""
    assert expected == share(w.QUERY, patterns, 4)


@pytest.mark.parametrize(
    "shape", ["foo{}.bar", "foo{}*bar{}", "re:.*x{}.*y", "layers.{}*e*e*e*e*q"]
)
def test_a_hundred_thousand_patterns(shape: str) -> None:
    """No recipe makes the answer slow."""
    patterns = [shape.format(place, place) for place in range(100_000)]
    begin = time.perf_counter()

    assert share(w.QUERY, patterns, 4096) == 0.0
    assert time.perf_counter() - begin < 3
