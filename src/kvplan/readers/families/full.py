"""Grouped-query attention over every token: Llama and the models built like it."""

from __future__ import annotations

from kvplan.readers.families.base import Decoder


class Llama(Decoder):
    """Attention, gated MLP, two RMS norms."""


class Qwen3(Decoder):
    """Norms on each head's queries and keys."""

    qk_norm = "head"
