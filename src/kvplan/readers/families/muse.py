"""Muse Spark's text model: experts in a narrower space, gates on the residuals.

models/muse_spark/configuration_muse_spark.py and modeling_muse_spark.py of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.mixtures import Named
from kvplan.readers.families.windows import Gated, LastFull


class MuseSparkText(Gated, LastFull, Named):
    """Three norms with a scale and two residual gates a block, all of the model's width."""

    norms = 5
    dense = 0
    expert_count = "num_local_experts"

    def routed(self, c: Config) -> Weights:
        """Projections into ``moe_hidden_size`` and out, a norm before the experts and one behind.

        The router reads the wide state (MuseSparkMoE, MuseSparkExperts).
        """
        hidden, narrow = self.hidden(c), c.whole("moe_hidden_size")
        count = c.whole(self.expert_count)
        inside = parts.experts(narrow, c.whole(self.expert_inner), count, self.num_drawn(c))
        experts = tuple([weight for weight in inside if weight.role != w.ROUTER])
        return (
            *experts,
            *parts.linear(w.ROUTER, hidden, count),
            *parts.linear(w.MLP_IN, hidden, narrow),
            *parts.linear(w.MLP_OUT, narrow, hidden),
            *parts.norm(narrow, count=2),
        )
