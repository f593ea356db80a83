"""A request on its way through the engine, and the blocks it holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from kvplan.simulation.blocks import Block

Keys = Callable[[int], Hashable]  # tokens of the sequence, a block's multiple → what it is found by


@dataclass(slots=True, eq=False)
class Table:
    """A request's blocks in one group, in the order of its tokens.

    ``num_registered`` blocks have been looked at for the prefix index. Of states: ``last_state`` is
    where the state before the running one lies, ``num_retired`` the blocks that are gone for good,
    ``started`` whether a step has written, ``checkpoint`` (tokens, block) of a state to be kept
    that this step exports on its way.
    """

    blocks: list[Block] = field(default_factory=list)
    num_registered: int = 0
    last_state: int | None = None
    num_retired: int = 0
    started: bool = False
    checkpoint: tuple[int, int] | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """What was asked, and how far it is.

    ``num_computed`` counts scheduled tokens; ``num_in_flight`` of them are not settled yet,
    ``num_placeholders`` are outputs that are scheduled and not known. ``junction`` is the end of a
    shared prefix that a sparse group does not keep yet; ``furthest`` what has been computed once.
    """

    number: int
    num_prompt: int
    num_output: int
    keys: Keys
    priority: int = 0
    order: float = 0
    num_generated: int = 0
    num_computed: int = 0
    num_in_flight: int = 0
    num_stale: int = 0
    num_placeholders: int = 0
    num_preemptions: int = 0
    junction: int = 0
    furthest: int = 0
    is_swapped: bool = False
    is_prefilling: bool = True
    tables: tuple[Table, ...] = ()

    @property
    def num_tokens(self) -> int:
        """Prompt and what has been generated."""
        return self.num_prompt + self.num_generated

    @property
    def prefill_end(self) -> int:
        """Where the prompt ends; after a preemption, what was generated is prompt too."""
        return max(self.num_prompt, self.num_tokens - 1)
