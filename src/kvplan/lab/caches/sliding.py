"""A window with sinks: the first tokens and the last; what is between is dropped.

    first ┃ ······ dropped ······ ┃ recent

Xiao et al., Efficient Streaming Language Models with Attention Sinks (ICLR 2024), section 3.2: the
first four tokens draw attention whatever they say. There the keys that are left are rotated anew by
their place in the cache; here they keep the rotation of their own positions, as kvpress does it.
"""

from __future__ import annotations

from typing import Any

import torch

from kvplan.lab.caches.base import KeptLayer


class SlidingLayer(KeptLayer):
    """The first ``sinks`` tokens and the last ``recent``."""

    def __init__(self, sinks: int, recent: int) -> None:
        super().__init__()
        self.sinks, self.recent = sinks, recent

    def keep(self, keys: Any, values: Any) -> None:
        """Both ends."""
        if keys.shape[-2] <= self.sinks + self.recent:
            self.keys, self.values = keys, values
        else:
            self.keys, self.values = self._ends(keys), self._ends(values)

    def _ends(self, rows: Any) -> Any:
        last = rows.shape[-2] - self.recent
        return torch.cat([rows[:, :, : self.sinks], rows[:, :, last:]], dim=-2)
