"""What every layer of ours answers to transformers, and how the bytes of a cache are counted.

transformers asks a layer (5.24.0, cache_utils.py, CacheLayerMixin):

    update(keys, values)          the new ones in, all that the step may look at out
    get_seq_length()              tokens that the sequence has had; positions follow from it
    get_mask_sizes(new)           (rows that ``update`` will give, the position of the first)

Where tokens were dropped the rows that are left stand, for the mask, right before the new ones:
all of them are older than every new token, so that a causal mask lets each new token see them all.
Keys keep the rotation of the positions that they had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from transformers.cache_utils import Cache, CacheLayerMixin, get_layer_types_and_kwargs

from kvplan.core.errors import BadValue

FULL, WINDOW = "full_attention", "sliding_attention"


class Held(NamedTuple):
    """Bytes of a cache by where they are."""

    device: int = 0
    host: int = 0
    disk: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


class KeptLayer(CacheLayerMixin):  # type: ignore[misc]
    """A layer that keeps every token; what others keep, they say in ``keep``."""

    is_compileable = False
    is_croppable = False
    is_sliding = False

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def lazy_initialization(self, key_states: Any, value_states: Any) -> None:
        """Empty tensors of the states' type and device."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
        self.is_initialized = True

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """The rows that were kept and the new ones; what is kept of them is a copy."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.seen += key_states.shape[-2]
        keys = torch.cat([self.keys, key_states], dim=-2)
        values = torch.cat([self.values, value_states], dim=-2)
        self.keep(keys, values)
        return keys, values

    def keep(self, keys: Any, values: Any) -> None:
        """Take what the next step shall see."""
        self.keys, self.values = keys, values

    @property
    def num_kept(self) -> int:
        """Rows that the next step finds."""
        return int(self.keys.shape[-2]) if self.is_initialized else 0

    def get_seq_length(self) -> int:
        """Tokens that the sequence has had."""
        return self.seen

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Rows that ``update`` will give, and the position of the first for the mask."""
        kept = self.num_kept
        return kept + query_length, self.seen - kept

    def get_max_length(self) -> int:
        """No most."""
        return -1

    def reset(self) -> None:
        """As new."""
        self.__dict__.update(keys=None, values=None, is_initialized=False, seen=0)

    def held(self) -> Held:
        """Bytes, by where they are."""
        return Held(device=storage_bytes(self))


class WindowLayer(KeptLayer):
    """A layer of a model whose attention has a window: its last ``size − 1`` tokens, copied."""

    is_sliding = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def keep(self, keys: Any, values: Any) -> None:
        """The last ones."""
        first = max(0, keys.shape[-2] - self.size + 1)
        self.keys, self.values = keys[:, :, first:].clone(), values[:, :, first:].clone()


def layers_of(config: Any, make: Any) -> list[Any]:
    """A layer for each of the model's: ``make()`` of full attention, a window where it has one.

    Raises:
        BadValue: a layer that keeps neither, which these caches do not hold.
    """
    kinds, options = get_layer_types_and_kwargs(config.get_text_config(decoder=True))
    others = sorted(set(kinds) - {FULL, WINDOW})
    if others:
        raise BadValue(
            f"This cache holds full and sliding attention; the model has {', '.join(others)}.",
            "Its full, static and none are there.",
        )
    return [
        WindowLayer(option["sliding_window"]) if kind == WINDOW else make()
        for kind, option in zip(kinds, options, strict=True)
    ]


def cache_of(config: Any, make: Any) -> Any:
    """A cache whose layers of full attention are made by ``make``."""
    return Cache(layers=layers_of(config, make))


def held_bytes(cache: Any) -> Held:
    """Bytes of a whole cache: of the storages that its tensors keep alive, each counted once."""
    if cache is None:
        return Held()
    own = getattr(cache, "held", None)
    if own is not None:
        return own()  # type: ignore[no-any-return]
    parts = [
        layer.held() if isinstance(layer, KeptLayer) else Held(device=storage_bytes(layer))
        for layer in cache.layers
    ]
    return Held(*map(sum, zip(*parts, strict=True)))


def storage_bytes(owner: Any) -> int:
    """Bytes of the storages of all tensors that an object holds, also inside others."""
    storages = {}
    for tensor in tensors_in(vars(owner)):
        storage = tensor.untyped_storage()
        if storage.nbytes():
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def tensors_in(value: Any, depth: int = 4) -> Iterator[Any]:
    """Plain tensors within a value: in lists, dictionaries, and tensors made of others."""
    if isinstance(value, torch.Tensor):
        names = getattr(value, "__tensor_flatten__", None)
        if names is None:
            yield value
        else:
            for name in names()[0]:
                yield from tensors_in(getattr(value, name), depth)
    elif depth and isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(inner, depth - 1)
