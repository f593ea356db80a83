"""Asking kvplan as its users do: sizes and fits of catalogue models, without the network."""

from __future__ import annotations

from typing import Any

import kvplan
from kvplan.core.units import GIB

AMPLE = "10TiB"  # a card on which the question's own pool is what counts


def fit(model: str, **asked: Any) -> kvplan.FitAnswer:
    """A fit on an ample card unless one is named."""
    if "gpu" not in asked:
        asked = {"gpu_memory": AMPLE, **asked}
    return kvplan.fit(model, offline=True, **{"engine": "vllm", **asked})


def pool(model: str, **asked: Any) -> dict[str, Any]:
    """The pool of the JSON."""
    found: dict[str, Any] = fit(model, **asked).to_dict()["pool"]
    return found


def size_gib(model: str, **asked: Any) -> float:
    """GiB of the one context that is asked."""
    contexts = kvplan.size(model, offline=True, **asked).to_dict()["contexts"]
    return float(contexts[0]["bytes"]) / GIB


def token_bytes(model: str, **asked: Any) -> int:
    """Bytes that a token takes in all layers."""
    found = kvplan.size(model, offline=True, **asked).bytes_per_token
    assert found is not None
    return found


def rank_token_bytes(model: str, **asked: Any) -> float:
    """Bytes that a token takes of one rank's pool."""
    found = pool(model, **asked)
    return float(found["bytes_per_block"] / found["block_size"])
