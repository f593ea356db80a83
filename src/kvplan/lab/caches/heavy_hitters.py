"""H2O: the tokens that were attended to most, and the most recent.

Zhang et al., H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models
(NeurIPS 2023), section 4: each head adds up the attention that each of its tokens gets, and drops
the one with least that is not among the recent. Half of the budget is recent, half heavy.
"""

from __future__ import annotations

from typing import Any

import torch

from kvplan.lab.attention import attended
from kvplan.lab.caches.base import KeptLayer


class HeavyHitterLayer(KeptLayer):
    """``budget`` tokens of each head; the attention each has had stands beside it."""

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget, self.recent = budget, budget // 2
        self.scores: Any = None

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> Any:
        """All rows; they are thinned out once the step's attention is known."""
        keys, values = super().update(key_states, value_states, *args, **kwargs)
        view = keys.view(keys.shape)  # an attribute on what is kept would keep ourselves
        view.observer = self.observe
        return view, values

    def observe(self, query: Any, key: Any, scaling: float) -> None:
        """Add a step's attention, and drop what has least."""
        sums = attended(query, key, scaling)
        if self.scores is not None:
            sums[:, : self.scores.shape[-1]] += self.scores
        self.scores = sums
        if self.num_kept > self.budget:
            self._drop()

    def _drop(self) -> None:
        older = self.num_kept - self.recent
        heavy = self.scores[:, :older].topk(self.budget - self.recent, dim=-1).indices
        recent = torch.arange(older, self.num_kept, device=heavy.device)
        places = torch.cat([heavy.sort(-1).values, recent.expand(len(heavy), -1)], dim=-1)
        self.scores = self.scores.gather(-1, places)
        self.keys, self.values = pick(self.keys, places), pick(self.values, places)

    def reset(self) -> None:
        """As new."""
        super().reset()
        self.scores = None


def pick(rows: Any, places: Any) -> Any:
    """Rows of ``(1, heads, tokens, dim)`` at each head's places."""
    return rows.gather(2, places[None, :, :, None].expand(-1, -1, -1, rows.shape[-1]))
