"""SnapKV: of the prompt what its last tokens look at; of the answer everything.

Li et al., SnapKV: LLM Knows What You are Looking for Before Generation (NeurIPS 2024), section 4:
the attention of the last ``window`` tokens of the prompt votes for the tokens before them; votes
are pooled with their neighbours', so that what stands around a fact is kept with it.
"""

from __future__ import annotations

from typing import Any

import torch

from kvplan.lab.attention import attended
from kvplan.lab.caches.base import KeptLayer
from kvplan.lab.caches.heavy_hitters import pick

NEIGHBOURS = 7  # the paper's kernel


class SnappedLayer(KeptLayer):
    """``budget`` tokens of each head of the prompt, the last ``window`` among them."""

    def __init__(self, budget: int, window: int) -> None:
        super().__init__()
        self.budget, self.voters = budget, min(window, budget)

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> Any:
        """All rows; a prompt that is too long is cut down once its attention is known."""
        first = not self.seen
        keys, values = super().update(key_states, value_states, *args, **kwargs)
        if not first or keys.shape[-2] <= self.budget:
            return keys, values
        view = keys.view(keys.shape)
        view.observer = self.observe
        return view, values

    def observe(self, query: Any, key: Any, scaling: float) -> None:
        """Keep what the prompt's end looks at."""
        older = self.num_kept - self.voters
        votes = attended(query, key, scaling, last=self.voters)[:, :older]
        pooled = torch.nn.functional.avg_pool1d(
            votes, NEIGHBOURS, stride=1, padding=NEIGHBOURS // 2, count_include_pad=False
        )
        chosen = pooled.topk(self.budget - self.voters, dim=-1).indices.sort(-1).values
        recent = torch.arange(older, self.num_kept, device=chosen.device)
        places = torch.cat([chosen, recent.expand(len(chosen), -1)], dim=-1)
        self.keys, self.values = pick(self.keys, places), pick(self.values, places)
