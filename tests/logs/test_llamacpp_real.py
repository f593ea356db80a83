"""Lines that a real llama.cpp printed, with its stamps, read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.core.units import MIB
from kvplan.logs.read import read_log

LOGS = Path(__file__).parents[1] / "reference" / "logs"
FACTS = {
    "llamacpp-b11549-gemma-3-270m.log": {
        "model": "Gemma 3 270m", "architecture": "gemma3", "num_layers": 18, "num_kv_heads": 1,
        "key_dim": 256, "window_size": 512, "trained_context_tokens": 32768, "file_type": "Q4_K_M",
        "context_tokens": 8192, "kv_sequences": 4, "kv_cells": 8192, "kv_layers": 3,
        "kv_streams": 1, "kv_bytes": 24 * MIB, "k_bytes": 12 * MIB, "swa_kv_cells": 2560,
        "swa_kv_layers": 15, "swa_kv_bytes": round(37.5 * MIB), "max_model_len": 8192,
    },
    "llamacpp-b11549-smollm2-135m.log": {
        "architecture": "llama", "kv_cells": 4096, "kv_layers": 30, "k_type": "q8_0",
        "kv_bytes": round(47.81 * MIB), "file_type": "Q4_1",
    },
}  # fmt: skip
FLAGS = {
    "llamacpp-b11549-gemma-3-270m.log": {
        "--ctx-size": 8192, "--parallel": 4, "--kv-unified": True, "--flash-attn": "auto",
        "--cache-type-k": "f16",
    },
    "llamacpp-b11549-smollm2-135m.log": {"--no-kv-unified": True, "--cache-type-v": "q8_0"},
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_a_real_log(name: str) -> None:
    """Figures and settings as the server had them."""
    log = read_log(LOGS / name)
    start = log.start
    assert start is not None
    found = {fact.name: fact.value for fact in start.facts}

    assert FACTS[name] == {key: found.get(key) for key in FACTS[name]}
    assert FLAGS[name] == {key: start.flags.get(key) for key in FLAGS[name]}
    assert ("llama.cpp", []) == (start.engine, start.failures)
