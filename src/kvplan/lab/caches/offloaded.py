"""Every token of a layer away from the device: in host memory or in a file.

A step brings one layer back, adds the new tokens, and lets the copy go; what is written each time
is the new tokens alone. transformers' own offloaded cache asks for CUDA; this one asks for nothing.
"""

from __future__ import annotations

import tempfile
from typing import Any, Protocol

import torch

from kvplan.lab.caches.base import Held, KeptLayer


class Store(Protocol):
    """A tensor that grows by rows, somewhere."""

    def append(self, rows: Any) -> None:
        """Rows of ``(1, heads, new, dim)`` at the end."""

    def read(self, device: Any) -> Any:
        """All rows, on the device."""

    def held(self) -> Held:
        """Bytes, by where they are."""


class HostStore:
    """In the host's memory."""

    def __init__(self) -> None:
        self.rows: Any = None

    def append(self, rows: Any) -> None:
        """A copy on the host, which shares nothing with the device's."""
        new = rows.to("cpu", copy=True)
        self.rows = new if self.rows is None else torch.cat([self.rows, new], dim=-2)

    def read(self, device: Any) -> Any:
        """All rows."""
        return self.rows.to(device)

    def held(self) -> Held:
        """The tensor."""
        return Held(host=0 if self.rows is None else self.rows.untyped_storage().nbytes())


class DiskStore:
    """In a file without a name: a token after the other, each its heads and their elements."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="kvplan-lab-")  # noqa: SIM115  (lives with us)
        self.shape: tuple[int, ...] = ()
        self.dtype: Any = None

    def append(self, rows: Any) -> None:
        """Their bytes at the end of the file."""
        self.shape, self.dtype = (rows.shape[1], rows.shape[3]), rows.dtype
        by_token = rows[0].transpose(0, 1).contiguous().to("cpu")
        self.file.seek(0, 2)
        self.file.write(by_token.view(torch.uint8).numpy().tobytes())
        self.file.flush()

    def read(self, device: Any) -> Any:
        """The whole file."""
        self.file.seek(0)
        data = bytearray(self.file.read())
        rows = torch.frombuffer(data, dtype=self.dtype).view(-1, *self.shape)
        return rows.transpose(0, 1)[None].to(device)

    def held(self) -> Held:
        """The file's length."""
        return Held(disk=self.file.seek(0, 2))

    def __del__(self) -> None:
        self.file.close()


class OffloadedLayer(KeptLayer):
    """A layer whose keys and values are in stores of their own."""

    def __init__(self, store: type[HostStore] | type[DiskStore]) -> None:
        super().__init__()
        self.make = store
        self.stores: tuple[Store, Store] = (store(), store())

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Everything brought back, and the new rows stored."""
        before, self.seen = self.seen, self.seen + key_states.shape[-2]
        self.is_initialized = True
        found = []
        for store, new in zip(self.stores, (key_states, value_states), strict=True):
            store.append(new)
            found.append(store.read(new.device) if before else new)
        return found[0], found[1]

    @property
    def num_kept(self) -> int:
        """All."""
        return self.seen

    def reset(self) -> None:
        """As new."""
        super().reset()
        self.stores = (self.make(), self.make())

    def held(self) -> Held:
        """What both stores hold."""
        keys, values = (store.held() for store in self.stores)
        return Held(*map(sum, zip(keys, values, strict=True)))
