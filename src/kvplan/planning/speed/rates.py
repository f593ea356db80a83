"""How much of a card's peaks an engine reaches, and what a step costs besides."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Of one engine on one card, for one model's types.

    ``share_read``, ``share_experts`` and ``share_cache`` are of the bandwidth, for dense matrices,
    for drawn experts and for the cache; ``share_dense``, ``share_products`` (of experts) and
    ``share_attention`` of the dense peak; ``share_link`` of the link. The rest is seconds that no
    byte and no operation explains: of a step, of each layer, of each layer with experts on top, of
    each sequence, of each new token, of a message between two ranks. ``sharpness`` says how
    suddenly a kernel turns from reading to computing.
    """

    share_read: float = 1.0
    share_experts: float = 1.0
    share_cache: float = 1.0
    share_dense: float = 1.0
    share_products: float = 1.0
    share_attention: float = 1.0
    share_link: float = 1.0
    step_s: float = 0.0
    layer_s: float = 0.0
    mixed_s: float = 0.0
    sequence_s: float = 0.0
    token_s: float = 0.0
    message_s: float = 0.0
    sharpness: float = inf


IDEAL = Rates()
