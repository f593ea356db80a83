"""Keys and values in 8, 4 or 2 bits, the most recent tokens as they came.

    keys      each channel over ``group`` tokens; they wait until ``residual`` of them are there
    values    each token over ``group`` channels; the last ``residual`` stay whole

Liu et al., KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache (ICML 2024): a few
channels of the keys are large for every token, so that a group along tokens has a narrow range and
a group along channels a wide one. ``keys_per_token`` packs keys as values are packed, to see it.
"""

from __future__ import annotations

from typing import Any

import torch

from kvplan.lab.caches.base import Held, KeptLayer, storage_bytes
from kvplan.lab.caches.packing import Packed, dequantise, quantise


class Rows:
    """Rows of one tensor: those that are packed and those that are whole."""

    def __init__(self, bits: int, group: int, residual: int, by_channel: bool) -> None:
        self.bits, self.group, self.residual = bits, group, residual
        self.by_channel = by_channel
        self.packed: Packed | None = None
        self.whole: Any = None

    def read(self, new: Any) -> Any:
        """All of them, the new ones at the end as they came; they are taken."""
        recent = new if self.whole is None else torch.cat([self.whole, new], dim=-2)
        parts = [] if self.packed is None else [self._unpacked(new.dtype)]
        self._take(recent)
        return torch.cat([*parts, recent], dim=-2)

    def _take(self, recent: Any) -> None:
        """Pack what is ready: whole residuals of keys, all but the last residual of values."""
        count = recent.shape[-2]
        ready = count - count % self.residual if self.by_channel else count - self.residual
        if ready <= 0:
            self.whole = recent
            return
        rows = recent[:, :, :ready]
        packed = quantise(rows.mT if self.by_channel else rows, self.bits, self.group)
        along = -1 if self.by_channel else -2
        self.packed = packed if self.packed is None else self.packed.join(packed, along)
        self.whole = recent[:, :, ready:].clone()

    def _unpacked(self, dtype: Any) -> Any:
        assert self.packed is not None
        rows = dequantise(self.packed, self.bits, self.group, dtype)
        return rows.mT if self.by_channel else rows


class QuantisedLayer(KeptLayer):
    """A layer in KIVI's layout."""

    def __init__(
        self, bits: int, group: int, residual: int, *, keys_per_token: bool = False
    ) -> None:
        super().__init__()
        self.key_rows = Rows(bits, group, residual, by_channel=not keys_per_token)
        self.value_rows = Rows(bits, group, residual, by_channel=False)

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Everything read back, the new rows as they came."""
        self.is_initialized = True
        self.seen += key_states.shape[-2]
        return self.key_rows.read(key_states), self.value_rows.read(value_states)

    @property
    def num_kept(self) -> int:
        """All."""
        return self.seen

    def reset(self) -> None:
        """As new."""
        super().reset()
        for rows in (self.key_rows, self.value_rows):
            rows.packed = rows.whole = None

    def held(self) -> Held:
        """Packed and whole."""
        return Held(device=storage_bytes(self.key_rows) + storage_bytes(self.value_rows))
