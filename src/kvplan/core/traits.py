"""What engines decide by and the shapes of caches do not say, as the source states it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class RotaryTable(NamedTuple):
    """The sines and cosines that an engine keeps of one rotation: a row a position.

    ``share`` is the part of a head that is rotated; ``windowed`` marks the table of the layers with
    a window where they have one of their own; ``sectioned`` one over time, height and width.
    """

    positions: int
    share: float = 1.0
    windowed: bool = False
    sectioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts of a checkpoint that change how an engine serves it; empty or 0 is not stated.

    ``dtype`` is the type of the weights; ``kv_cache_format`` the KV scheme that a quantised
    checkpoint carries (``fp8``, ``nvfp4``); ``state_dtype`` the type that a recurrent state is to
    be kept in. ``draft_layers`` are the multi-token-prediction modules in the checkpoint.
    ``served_context`` is the context that engines take where it is not the declared one (a scaled
    rotation). ``index_head_dim``, ``index_pool`` and ``index_topk`` describe a sparse attention's
    indexer: the width of its keys, the tokens that share one, the tokens that it picks.
    ``state_chunk`` are the tokens that a state space processes at once. ``even_experts`` says that
    a mixture's router corrects each expert's score so that all are drawn about as often.
    ``rotary`` are the tables of its rotations.
    """

    dtype: str = ""
    kv_cache_format: str = ""
    state_dtype: str = ""
    draft_layers: int = 0
    served_context: int | None = None
    index_head_dim: int = 0
    index_pool: int = 0
    index_topk: int = 0
    state_chunk: int = 0
    multimodal: bool = False
    even_experts: bool = False
    rotary: tuple[RotaryTable, ...] = ()


NO_TRAITS = Traits()
