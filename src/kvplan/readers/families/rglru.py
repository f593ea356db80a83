"""Recurrent Gemma: real-gated linear recurrent units beside windows.

models/recurrent_gemma/configuration_recurrent_gemma.py and modeling_recurrent_gemma.py
(transformers 5.24.0).
"""

from __future__ import annotations

from itertools import cycle, islice

from kvplan.core import weights as w
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.states import RecurrentState, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import SLIDING, Mixer
from kvplan.readers.families.hybrids import LINEAR, Hybrid
from kvplan.readers.families.mamba import MODEL_BYTES


class RecurrentGemma(Hybrid):
    """``block_types`` over and over; the network's width is that of gate and up together."""

    output_bias = True
    mlp_bias = True

    def kinds(self, c: Config, count: int) -> list[str]:
        """All that is not recurrent is a window."""
        pattern = [LINEAR if kind == "recurrent" else SLIDING for kind in c.words("block_types")]
        return list(islice(cycle(pattern), count))

    def state(self, c: Config) -> Mixer:
        """Two projections, a convolution, and the unit with gates that are block-diagonal."""
        hidden, heads = self.hidden(c), c.whole("num_attention_heads")
        width, kernel = c.whole("lru_width", hidden), c.whole("conv1d_width")
        block = max(1, width // heads)
        weights = (
            *parts.repeat(parts.linear(w.STATE_IN, hidden, width, bias=True), 2),
            *parts.convolution(w.STATE, width, width, kernel, groups=width),
            Weight(w.STATE, width),
            *parts.repeat(parts.linear(w.STATE, block, block, bias=True), 2 * heads),
            *parts.linear(w.STATE_OUT, width, hidden, bias=True),
        )
        conv = StateTensor(name="conv", shape=(width, kernel - 1), element_bytes=MODEL_BYTES)
        unit = StateTensor(name="lru", shape=(width,), element_bytes=FLOAT32_BYTES)
        return Mixer((RecurrentState(tensors=(conv, unit)),), weights)

    def inner(self, c: Config) -> int:
        """Half of what the config names."""
        return c.whole("intermediate_size", least=2) // 2
