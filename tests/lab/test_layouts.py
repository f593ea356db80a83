"""What each cache should hold, by arithmetic alone: beside measured bytes, and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.formats import parse_format
from kvplan.lab.kinds import KINDS, Sizes
from kvplan.readers.open_model import open_model

MEASURED = json.loads(
    Path(__file__).parent.parent.joinpath("reference/lab/held_bytes.json").read_text("utf-8")
)["rows"]
SMOLLM2 = {
    "model_type": "llama", "num_hidden_layers": 30, "hidden_size": 576, "num_attention_heads": 9,
    "num_key_value_heads": 3, "head_dim": 64, "intermediate_size": 1536, "vocab_size": 49152,
}  # fmt: skip
# The same layers, all with a window.
WINDOWED = SMOLLM2 | {"model_type": "mistral"}
TOKEN = 30 * 2 * 3 * 64 * 4  # bytes of a token in float32
GEMMA_TOKEN = 2 * 256 * 4  # of one layer of Gemma-3-270m


def predicted(config: Any, cache: str, prompt: int, tokens: int, **sizes: int) -> int:
    model = open_model(config, offline=True)
    asked = Sizes(tokens=tokens, **({"budget": 64} | sizes))
    return KINDS[cache].predicted(model, "f32", asked, prompt)


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row['cache']} {row.get('window', '')}")
def test_predicted_is_what_was_measured(row: dict[str, Any]) -> None:
    """Predictions are what transformers' own caches held, to the byte."""
    config = WINDOWED | {"sliding_window": row["window"]} if "window" in row else SMOLLM2

    assert row["bytes"] == predicted(config, row["cache"], row["prompt"], row["tokens"])


@pytest.mark.parametrize(
    ("cache", "prompt", "tokens", "expected"),
    [
        ("none", 200, 215, 0),
        ("full", 200, 215, 215 * TOKEN),
        ("static", 200, 215, 215 * TOKEN + 30 * 8),
        ("paged", 200, 215, (14 + 1) * 16 * TOKEN),
        ("sliding", 200, 215, 64 * TOKEN),
        ("sliding", 20, 35, 35 * TOKEN),
        ("offload", 200, 215, 215 * TOKEN),
        ("disk", 200, 215, 215 * TOKEN),
        ("h2o", 200, 215, 64 * (TOKEN + 30 * 3 * 4)),
        ("snapkv", 200, 215, (64 + 15) * TOKEN),
        ("snapkv", 40, 55, 55 * TOKEN),
        ("int8", 31, 31, 31 * TOKEN),
        # keys: 192 packed, 23 whole; values: 183 packed, 32 whole; a scale and a minimum of 16
        # bits for each 32 elements
        ("int4", 200, 215, 30 * 192 * ((192 + 183) // 2 + 23 * 4 + 32 * 4)
         + 30 * 192 * (192 + 183) // 32 * 4 + 30 * 192 // 2),
        ("int2-token", 200, 215, 2 * 30 * 192 * (32 * 4) + 2 * 30 * 183 * (192 // 4 + 6 * 4)),
    ],
)  # fmt: skip
def test_predicted_by_hand(cache: str, prompt: int, tokens: int, expected: int) -> None:
    """Each layout is the arithmetic that its name says."""
    assert expected == predicted(SMOLLM2, cache, prompt, tokens)


@pytest.mark.parametrize(
    ("cache", "prompt", "tokens", "windows", "full"),
    [
        ("full", 600, 600, 600, 600),  # a view of the whole prompt
        ("full", 600, 605, 512, 605),  # 511 and the new one
        ("full", 400, 405, 405, 405),
        ("static", 600, 605, 512, 605),
        ("paged", 600, 605, 624, 624),
        ("sliding", 600, 605, 511, 64),
        ("offload", 600, 605, 511, 605),
        ("snapkv", 600, 605, 511, 69),
    ],
)
def test_windows_of_the_model(
    cache: str, prompt: int, tokens: int, windows: int, full: int
) -> None:
    """Gemma's 15 layers with a window keep it whatever is done to the 3 others."""
    counters = {"full": 15 * 8, "static": 18 * 8}.get(cache, 0)
    expected = (15 * windows + 3 * full) * GEMMA_TOKEN + counters

    assert expected == predicted("google/gemma-3-270m", cache, prompt, tokens)


def test_fewer_bits_are_fewer_bytes() -> None:
    """Over a long context every format costs less than the one with more bits."""
    names = ["full", "int8", "fp8", "int4", "int2"]
    held = [predicted(SMOLLM2, name, 8192, 8192) for name in names]

    assert sorted(held, reverse=True) == held


def test_whole_tokens_cost_what_the_model_computes_in() -> None:
    """The recent window of a quantised cache is in the model's type: half as large in bf16."""
    model = open_model(SMOLLM2, offline=True)
    sizes = Sizes(tokens=31, budget=64)

    assert KINDS["int4"].predicted(model, "bf16", sizes, 31) == 31 * TOKEN // 2
    assert parse_format("kivi4").bits_per_element == 5.0
