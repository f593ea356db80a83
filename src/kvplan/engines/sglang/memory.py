"""Free bytes of a rank before and after its weights."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.model import Model
from kvplan.core.units import GIB
from kvplan.engines.base import Asked, Node
from kvplan.engines.sglang.rules import Rules
from kvplan.engines.sglang.settings import Settings
from kvplan.engines.weights import Layout, RankWeights, asked_weights

# What a rank has taken before it loads weights: driver context, NCCL, custom all-reduce. Two logs:
# 1.09 GiB of 24.00 on an RTX 3090 (TP 2), 2.5 of 140.4 on an H200 (TP 8).
CONTEXT_BYTES: Final = int(0.62 * GIB)
CONTEXT_BYTES_A_RANK: Final = int(0.235 * GIB)
CONTEXT_ERROR: Final = GIB // 2
# "Load weight end" is printed before the last temporaries: 0.02 to 0.09 GiB more go, in 78 logs.
LOAD_BYTES: Final = int(0.05 * GIB)


class Memory(NamedTuple):
    """Free bytes before and after loading, the weights, and whether a log stated the first."""

    before: int
    after: int
    weights: RankWeights
    stated: bool

    def slack(self, settings: Settings) -> float:
        """What the fraction leaves to activations and graphs."""
        return self.before * (1 - settings.fraction)

    def rest(self, model: Model, settings: Settings, rules: Rules) -> float:
        """Bytes for the pools: after the weights, less what the fraction leaves.

        mem_cache/kv_cache_configurator.py (0.5.23), _profile_available_bytes.
        """
        later = rules.multimodal_reserve if model.traits.multimodal else 0
        return self.after - self.slack(settings) - later


def memory(model: Model, node: Node, asked: Asked, settings: Settings) -> Memory:
    """Free bytes, from a log's figures where they are given.

    Raises:
        BadValue: weights that neither the source nor a flag knows.
    """
    weights = _weights(model, asked, settings)
    stated = asked.flags.get("--free-before-load")
    context = CONTEXT_BYTES + CONTEXT_BYTES_A_RANK * min(settings.tp * settings.pp, 8)
    before = stated if stated is not None else max(0, node.available_bytes - context)
    after = asked.flags.get("--free-after-load")
    if after is None:
        after = before - weights.num_bytes - LOAD_BYTES
    return Memory(before, after, weights, stated is not None)


def _weights(model: Model, asked: Asked, settings: Settings) -> RankWeights:
    layout = Layout(
        tp=settings.tp,
        pp=settings.pp,
        expert_ranks=settings.ep if settings.ep > 1 else 0,
    )
    return asked_weights(model, layout, asked)
