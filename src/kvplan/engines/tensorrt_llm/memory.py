"""What is free after loading: the memory that the fraction is taken of.

    free = memory − context − weights − step buffers

Step buffers are an estimate from six start-up reports, with the whole of it as its error: the
context of a step (activations), and the sampler's copies of the logits, which grow with
``max_batch_size`` × vocabulary. A log's own ``available`` replaces all of it
(--free-after-load).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.model import Model
from kvplan.core.units import GIB
from kvplan.engines.base import Asked, Node
from kvplan.engines.tensorrt_llm.settings import Settings
from kvplan.engines.weights import Layout, RankWeights, asked_weights

# 79.10 GiB total − 70.48 available − engine, context, buffers: 0.75 GiB (a start-up report of a
# 32-layer model at TP 2).
CONTEXT_BYTES: Final = 3 * GIB // 4
ACTIVATION_WIDTHS: Final = 8  # 16-bit copies of the hidden state of each token of a step
LOGITS_COPIES: Final = 4  # float32, of each sequence of a batch and beam


class Memory(NamedTuple):
    """The terms before the cache, and what they leave."""

    free: int
    weights: RankWeights
    context: int
    buffers: int
    stated: bool


def memory(model: Model, node: Node, asked: Asked, settings: Settings) -> Memory:
    """Free bytes of the fullest rank.

    Raises:
        BadValue: weights that neither the source nor a flag knows.
    """
    layout = Layout(
        tp=settings.tp, pp=settings.pp, expert_ranks=settings.ep if settings.ep > 1 else 0
    )
    weights = asked_weights(model, layout, asked)
    stated = asked.flags.get("--free-after-load")
    if stated is not None:
        rest = max(0, node.available_bytes - stated - weights.num_bytes)
        context = min(rest, CONTEXT_BYTES)
        return Memory(stated, weights, context, rest - context, stated=True)
    buffers = step_buffers(model, settings)
    free = node.available_bytes - CONTEXT_BYTES - weights.num_bytes - buffers
    return Memory(free, weights, CONTEXT_BYTES, buffers, stated=False)


def step_buffers(model: Model, settings: Settings) -> int:
    """Activations of a step and the sampler's logits."""
    activations = settings.max_num_tokens * (model.hidden_size or 0) * 2 * ACTIVATION_WIDTHS
    rows = settings.max_batch * settings.beams
    logits = rows * (model.vocab_size or 0) * 4 * LOGITS_COPIES
    return activations + logits
