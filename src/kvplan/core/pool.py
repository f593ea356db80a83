"""The pool that an engine keeps its caches in: blocks, tokens, and what it says of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers that share a block table.

    ``layers`` are those that really keep something; ``blocks_per_sequence`` is what one sequence
    of the engine's maximum length may hold at once.
    """

    kind: str
    layers: int
    block_size: int
    page_bytes: int
    blocks_per_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One rank's pool.

    ``kv_tokens`` and ``max_concurrency`` are the figures that this version of the engine prints,
    None where it prints none; they are no promise that so many tokens fit.
    """

    num_bytes: int
    block_size: int | None = None
    num_blocks: int | None = None
    bytes_per_block: int | None = None
    kv_tokens: int | None = None
    max_concurrency: float | None = None
    max_model_len: int | None = None
    groups: tuple[Group, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The contract's ``pool`` object."""
        row = asdict(self)
        return {"bytes": row.pop("num_bytes")} | row | {"groups": [asdict(g) for g in self.groups]}
