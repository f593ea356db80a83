"""Grok 2's file names another model's type, and a class that says whose it is."""

from __future__ import annotations

import json

from kvplan.core.formats import FORMATS
from kvplan.readers.hf_config import read_config
from tests.oracle_cases import CONFIGS


def test_grok_is_told_by_its_class() -> None:
    """Published as 270 billion parameters of which 115 billion are active; 64 layers of 8 heads."""
    model = read_config(json.loads((CONFIGS / "xai-org--grok-2.json").read_text("utf-8")))

    assert model.weights is not None
    assert round(model.weights.parameters / 1e9) == 270
    assert round(model.weights.active_parameters / 1e9) == 115
    assert model.curve(FORMATS["bf16"]).bytes(1) == 64 * 2 * 8 * 128 * 2
