"""Traffic: what arrives, in columns, so that a million requests are a few arrays.

    request i:  arrives at arrival_s[i], or think_s[i] after request after[i] has finished
                prompt_tokens[i] in, output_tokens[i] out
                its prompt's blocks are hash_ids[hash_starts[i]:hash_starts[i + 1]]

Two requests share a prompt's beginning exactly as far as their leading ids are equal; an id stands
for ``hash_block`` tokens and all that came before them. Without ids no two prompts share anything,
and tokens past the last id are the request's own. Where ``after[i]`` is j, the ids of i that lie
past j's prompt name what j generated: a chat's next turn begins with the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvplan.core.step import AT_ONCE, Way

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests in the order in which they are sent: arrivals never fall, ``after[i] < i``.

    ``after`` is -1 where a request waits for none; elsewhere ``arrival_s`` is when the trace saw
    it. ``max_in_flight`` bounds the requests that a client keeps open (a closed loop); None is an
    open loop. ``way`` is what requests need from a client to the scheduler: who waits for an end is
    seen so much after it. ``is_drawn`` where another seed gives other traffic. ``skipped`` says of
    each row that was not taken why, with its line (the first ones; ``num_skipped`` counts all).
    ``notes`` say what was assumed.
    """

    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    after: Ints
    think_s: Floats
    priority: Ints
    hash_ids: Ints
    hash_starts: Ints
    hash_block: int
    source: str
    max_in_flight: int | None = None
    way: Way = AT_ONCE
    is_drawn: bool = False
    num_skipped: int = 0
    skipped: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.arrival_s)
