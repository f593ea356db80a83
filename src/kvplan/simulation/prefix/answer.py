"""``prefix``: what prompts share, what an engine reuses of it, and what a parting costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvplan.planning.answer import Answer
from kvplan.simulation.prefix.partings import Partings
from kvplan.simulation.prefix.pools import PoolHits
from kvplan.simulation.prefix.prompts import Prompts
from kvplan.simulation.prefix.reorder import Reordered
from kvplan.simulation.prefix.rules import Rule
from kvplan.simulation.prefix.shared import Shared

if TYPE_CHECKING:
    from kvplan.simulation.prefix.hosted import Bill
    from kvplan.simulation.prefix.seconds import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixAnswer(Answer):
    """The figures of the requests that count: all but the first ``warm_up``."""

    verb: ClassVar[str] = "prefix"

    prompts: Prompts
    rule: Rule
    warm_up: int
    reused: tuple[int, ...]  # tokens of each prompt, in a pool without end
    seen: tuple[int, ...]  # tokens of each prompt that came before, whole
    shared: Shared
    partings: Partings
    reordered: Reordered | None
    pools: tuple[PoolHits, ...]
    seconds: Seconds | None = None
    bill: Bill | None = None
    warnings: tuple[str, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """Of the requests that count."""
        return sum(self.lengths)

    def counted(self, values: Sequence[int]) -> list[int]:
        """Those of the requests that count."""
        return list(values[self.warm_up :])

    @property
    def lengths(self) -> list[int]:
        """Tokens of the prompts that count."""
        return [row.tokens for row in self.prompts.rows[self.warm_up :]]

    @property
    def reused_tokens(self) -> int:
        """Those that are not computed."""
        return sum(self.counted(self.reused))

    @property
    def computed_tokens(self) -> int:
        """Those that are."""
        return self.prompt_tokens - self.reused_tokens

    @property
    def hit_rate(self) -> float:
        """The share that is reused."""
        return self.reused_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``prefix``."""
        moved = self.reordered
        return {
            "source": self.prompts.source,
            "requests": len(self.prompts),
            "warm_up_requests": self.warm_up,
            "tokens_are": {
                "what": self.prompts.counted,
                "estimated": self.prompts.estimated,
            },
            "engine": {
                "name": self.rule.engine,
                "block_size": self.rule.block_size,
                "rule": self.rule.said,
            },
            "prompt_tokens": self.prompt_tokens,
            "reused_tokens": self.reused_tokens,
            "computed_tokens": self.computed_tokens,
            "hit_rate": self.hit_rate,
            "tree": [asdict(row) for row in self.shared.rows],
            "tree_rows": self.shared.num_rows,
            "breaks": [one.to_dict() for one in self.partings.breaks],
            "num_breaks": self.partings.num_breaks,
            "reordered": moved and _figures(moved),
            "pools": [{**asdict(pool), "hit_rate": pool.hit_rate} for pool in self.pools],
            "seconds": self.seconds and asdict(self.seconds),
            "api": self.bill and self.bill.to_dict(),
            "num_skipped": self.prompts.num_skipped,
            "skipped": list(self.prompts.skipped),
        }


def _figures(moved: Reordered) -> dict[str, Any]:
    return {
        "hit_rate": moved.hit_rate,
        "reused_tokens": moved.reused_tokens,
        "saved_tokens": moved.saved_tokens,
    }
