"""What kvplan says of a config, in the form the tables hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.core.formats import FORMATS
from kvplan.readers.hf_config import read_config


def answer(config: Mapping[str, Any], tokens: int) -> tuple[int, int]:
    """Bytes of one sequence in 16 bits, and parameters."""
    model = read_config(config)
    assert model.weights is not None
    return model.curve(FORMATS["bf16"]).bytes(tokens), model.weights.parameters
