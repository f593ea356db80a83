"""The drafts of speculative decoding: their tokens, and the layers that keep a cache for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.model import Model

MAX_TOKENS = 1024
# Methods with a module that attends: a layer of the target's shape each, unless told otherwise.
LAYERED = frozenset({"eagle", "eagle3", "draft_model", "dflash", "dspark"})
# Their assistant reads the target's cache (vLLM 0.32.0, model_executor/models/gemma4_mtp.py).
SHARES_TARGET = ("gemma4",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """``tokens`` a step, by ``layers`` layers; ``kv_heads`` and ``head_dim`` are 0 where they are
    the target's.
    """

    method: str
    tokens: int
    layers: int
    kv_heads: int = 0
    head_dim: int = 0

    @property
    def lookahead(self) -> int:
        """Tokens behind a window that several MTP modules may read again.

        VllmConfig.num_prefill_lookahead_tokens, less one (get_kv_cache_configs).
        """
        several = self.method == "mtp" and min(self.layers, self.tokens) > 1
        return self.tokens - 1 if several else 0

    @property
    def has_own_shape(self) -> bool:
        """Whether its layers differ from the target's."""
        return bool(self.kv_heads and self.head_dim)


def draft_of(model: Model, flags: Mapping[str, Any]) -> Draft | None:
    """What ``--speculative-config`` asks for; None without one.

    Raises:
        BadValue: no number of draft tokens, or one that is out of range.
    """
    asked = flags.get("--speculative-config")
    if not asked:
        return None
    method = str(asked.get("method") or ("draft_model" if asked.get("model") else "ngram"))
    tokens = asked.get("num_speculative_tokens", model.traits.draft_layers or 1)
    if tokens.__class__ is not int or not 0 < tokens <= MAX_TOKENS:
        raise BadValue(
            f"--speculative-config has num_speculative_tokens {str(tokens)[:20]!r}.",
            'Give a number, as in \'{"method": "mtp", "num_speculative_tokens": 3}\'.',
        )
    return Draft(
        method=method,
        tokens=tokens,
        layers=flags.get("--draft-layers", _usual_layers(model, method)),
        kv_heads=flags.get("--draft-kv-heads", 0),
        head_dim=flags.get("--draft-head-dim", 0),
    )


def _usual_layers(model: Model, method: str) -> int:
    """Every module of the checkpoint for MTP, one for another module that attends, else none."""
    if method.endswith("mtp"):
        modules = max(1, model.traits.draft_layers)
        return 0 if model.model_type.startswith(SHARES_TARGET) else modules
    return 1 if method in LAYERED else 0
