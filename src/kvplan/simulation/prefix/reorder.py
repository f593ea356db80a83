"""The same prompts with what differs moved behind what they share.

    before   [ system ][ 09:15 ][ handbook ][ question ]
    after    [ system ][ handbook ][ 09:15 ][ question ]

Of each family what at least half of its prompts have of the first one's stands first, in its order;
the rest follows as it stood.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kvplan.simulation.prefix.alignment import Landmarks, Run
from kvplan.simulation.prefix.partings import SPAN_TOKENS
from kvplan.simulation.prefix.prompts import Prompts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Reordered:
    """What the other order reuses, and how much that is more."""

    hit_rate: float
    reused_tokens: int
    saved_tokens: int
    reused: tuple[int, ...]  # of each prompt, by the engine's rule
    seen: tuple[int, ...]  # tokens of each that came before, whole


def reordered(prompts: Prompts, families: Sequence[tuple[int, int]]) -> Prompts | None:
    """The prompts in the order that shares more; None where no family is there."""
    members = _members(families)
    if not members or prompts.are_blocks:
        return None
    span = SPAN_TOKENS * prompts.units_per_token
    rows = list(prompts.rows)
    for leader, others in members.items():
        units = prompts.rows[leader].units
        marks = Landmarks(units, span)
        runs = {row: marks.align(prompts.rows[row].units) for row in others}
        common = _common(len(units), runs.values(), len(others))
        whole = Run(0, 0, len(units))
        for row, own in {leader: [whole], **runs}.items():
            moved = _moved(prompts.rows[row].units, own, common)
            # What is known of the answer still follows the prompt.
            kept = prompts.rows[row].kept[len(moved) :]
            rows[row] = replace(rows[row], units=moved, kept=_joined([moved, kept]))
    return replace(prompts, rows=rows)


def _members(families: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """All prompts of a family under the first of it: a leader may have a leader."""
    leads = dict(families)
    members: dict[int, list[int]] = defaultdict(list)
    for row in leads:
        first = row
        while first in leads:
            first = leads[first]
        members[first].append(row)
    return members


def _common(length: int, runs: Any, members: int) -> NDArray[np.bool_]:
    """Which units of a leader at least half of the others have."""
    import numpy as np

    counts = np.zeros(length + 1, np.int64)
    for own in runs:
        for run in own:
            counts[run.a] += 1
            counts[run.a + run.length] -= 1
    return np.cumsum(counts)[:-1] * 2 >= members


def _moved(units: Any, runs: Sequence[Run], common: NDArray[np.bool_]) -> Any:
    """A prompt whose common units stand first."""
    import numpy as np

    first = np.zeros(len(units), np.bool_)
    for run in runs:
        first[run.b : run.b + run.length] = common[run.a : run.a + run.length]
    return _joined([units[first], units[~first]])


def _joined(parts: Sequence[Any]) -> Any:
    import numpy as np

    return np.concatenate(parts)
