"""Pages: the simulator's pool of blocks, holding tensors.

    table of a sequence   [7, 3, 12]      its tokens 0–15 are in block 7, 16–31 in 3, 32–… in 12
    block 7               a page of every layer: block_size keys and values

A full block is found by its tokens and all before them, so that another sequence with the same
beginning holds the same block; one that nobody holds keeps its contents until it is needed again.
A sequence that writes into a block which another holds as well gets a copy of it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import torch
from transformers.cache_utils import Cache

from kvplan.lab.caches.base import Held, KeptLayer
from kvplan.simulation.blocks import Block, BlockPool


class Pages:
    """The tensors of a pool: for each layer the keys and the values of all blocks."""

    def __init__(self, num_layers: int, num_blocks: int, block_size: int) -> None:
        self.pool = BlockPool(num_blocks)
        self.block_size = block_size
        self.num_copies = 0
        self.layers: list[list[Any]] = [[] for _ in range(num_layers)]

    def of(self, layer: int, *states: Any) -> list[Any]:
        """A layer's tensors; the whole pool's are there from the first token."""
        if not self.layers[layer]:
            self.layers[layer] = [
                one.new_zeros(self.pool.num_blocks, self.block_size, one.shape[1], one.shape[3])
                for one in states
            ]
        return self.layers[layer]

    def copy(self, block: Block) -> Block:
        """Another block with the same contents."""
        (new,) = self.pool.allocate(1)
        for tensors in self.layers:
            for tensor in tensors:
                tensor[new.number] = tensor[block.number]
        self.num_copies += 1
        return new

    def held(self) -> Held:
        """The whole pool."""
        tensors = [tensor for layer in self.layers for tensor in layer]
        return Held(device=sum(tensor.untyped_storage().nbytes() for tensor in tensors))


class PagedLayer(KeptLayer):
    """One layer of a sequence: rows written to and read from the pages of its table."""

    def __init__(self, cache: PagedCache, place: int) -> None:
        super().__init__()
        self.cache, self.place = cache, place
        self.seen = cache.num_reused

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """The new rows into their pages; all rows, in the sequence's order."""
        start, self.seen = self.seen, self.seen + key_states.shape[-2]
        self.is_initialized = True
        self.cache.reserve(start, self.seen)
        tensors = self.cache.pages.of(self.place, key_states, value_states)
        blocks, offsets = self.cache.slots(start, self.seen)
        found = []
        for tensor, new in zip(tensors, (key_states, value_states), strict=True):
            tensor[blocks, offsets] = new[0].transpose(0, 1)
            rows = tensor[self.cache.numbers()].flatten(0, 1)[: self.seen]
            found.append(rows.transpose(0, 1)[None])
        return found[0], found[1]

    @property
    def num_kept(self) -> int:
        """All."""
        return self.seen


class PagedCache(Cache):  # type: ignore[misc]
    """A sequence's table over shared pages; ``prompt`` is looked up and what is found is held.

    ``num_reused`` tokens of the prompt are there already: feed what follows them.
    """

    def __init__(self, pages: Pages, prompt: Sequence[int] = ()) -> None:
        self.pages = pages
        self.table: list[Block] = []
        self.keys_of: list[bytes] = []
        self.num_reused = self._reuse(prompt)
        super().__init__(layers=[PagedLayer(self, place) for place in range(len(pages.layers))])

    def _reuse(self, prompt: Sequence[int]) -> int:
        """Hold the blocks of the prompt's beginning that are there; its last token is computed.

        vllm/v1/core/kv_cache_manager.py (0.32.0), get_computed_blocks: at most num_tokens − 1.
        """
        size = self.pages.block_size
        for place in range(max(0, len(prompt) - 1) // size):
            key = self._key(prompt, place)
            block = self.pages.pool.lookup(key)
            if block is None:
                break
            self.pages.pool.touch([block])
            self.table.append(block)
            self.keys_of.append(key)
        return len(self.table) * size

    def _key(self, tokens: Sequence[int], place: int) -> bytes:
        """What a full block is found by: its tokens, and the key of the block before it."""
        size = self.pages.block_size
        before = self.keys_of[place - 1] if place else b""
        own = ",".join(map(str, tokens[place * size : (place + 1) * size]))
        return sha256(before + own.encode()).digest()

    def register(self, tokens: Sequence[int]) -> None:
        """Tell what the computed tokens are: from now on their full blocks are found."""
        size = self.pages.block_size
        for place in range(len(self.keys_of), min(len(tokens), self.get_seq_length()) // size):
            self.keys_of.append(self._key(tokens, place))
            self.pages.pool.register(self.table[place], self.keys_of[place], (place + 1) * size)

    def reserve(self, start: int, end: int) -> None:
        """Blocks of our own for the tokens from ``start`` on.

        Raises:
            BadValue: the pool has no block left.
        """
        size, pool = self.pages.block_size, self.pages.pool
        for place in range(start // size, min(len(self.table), -(-end // size))):
            block = self.table[place]
            if block.num_holders > 1:
                self.table[place] = self.pages.copy(block)
                pool.free([block])
        self.table += pool.allocate(max(0, -(-end // size) - len(self.table)))

    def slots(self, start: int, end: int) -> tuple[Any, Any]:
        """The block and the place in it of each token from ``start`` to ``end``."""
        places = torch.arange(start, end)
        return self.numbers()[places // self.pages.block_size], places % self.pages.block_size

    def numbers(self) -> Any:
        """The table as numbers of blocks."""
        return torch.tensor([block.number for block in self.table])

    def fork(self) -> PagedCache:
        """Another sequence with the same tokens so far, which holds the same blocks."""
        other = PagedCache(self.pages)
        self.pages.pool.touch(self.table)
        other.table, other.keys_of = list(self.table), list(self.keys_of)
        for mine, theirs in zip(self.layers, other.layers, strict=True):
            theirs.seen, theirs.is_initialized = mine.seen, mine.is_initialized
        return other

    def close(self) -> None:
        """Let the blocks go; what is found by a key stays until it is needed."""
        self.pages.pool.free(reversed(self.table))
        self.table = []

    def held(self) -> Held:
        """The whole pool's bytes."""
        return self.pages.held()
