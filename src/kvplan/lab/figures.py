"""What the lab found of a cache, as plain values: they need no torch to be shown or read again."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """Mean negative log-likelihood of each passage's scored tokens, in nats."""

    losses: tuple[float, ...]

    @property
    def value(self) -> float:
        """Of all passages together, which are of one length."""
        return math.exp(statistics.fmean(self.losses))

    @property
    def spread(self) -> float | None:
        """Standard deviation of the passages' own perplexities."""
        if len(self.losses) < 2:
            return None
        return statistics.stdev(math.exp(loss) for loss in self.losses)

    def ratio(self, other: Perplexity) -> float:
        """Ours by another's, on the same passages."""
        return self.value / other.value

    def ratio_spread(self, other: Perplexity) -> float | None:
        """Standard deviation of the ratio over the passages, each beside its own."""
        pairs = zip(self.losses, other.losses, strict=True)
        ratios = [math.exp(mine - theirs) for mine, theirs in pairs]
        return statistics.stdev(ratios) if len(ratios) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Whether a fact was found, and the share of its answer's tokens that came first."""

    length: int
    depth: float
    whole: bool
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cache: what it should hold and holds, what it took, and what it did to the answers.

    Bytes are between steps: at the end, and right after the prompt. ``same_tokens`` is how long
    the answer goes on as the full cache's does.
    """

    cache: str
    note: str
    prompt_tokens: int
    output_tokens: int
    positions_processed: int
    predicted_bytes: int
    device_bytes: int
    host_bytes: int
    disk_bytes: int
    prefill_bytes: int
    peak_bytes: int | None
    ttft_s: float
    itl_s: float | None
    same_tokens: int
    exact: bool
    perplexity: Perplexity | None = None
    full_perplexity: Perplexity | None = None
    found: tuple[Found, ...] | None = None

    @property
    def measured_bytes(self) -> int:
        """All that it holds, wherever it is."""
        return self.device_bytes + self.host_bytes + self.disk_bytes

    @property
    def identical_output(self) -> bool:
        """Whether the answer is the full cache's, token for token."""
        return self.same_tokens == self.output_tokens

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens a second once the first is there."""
        return 1 / self.itl_s if self.itl_s else None

    @property
    def recall(self) -> float | None:
        """Share of the facts that were found."""
        if not self.found:
            return None
        return sum(one.whole for one in self.found) / len(self.found)

    def to_dict(self) -> dict[str, Any]:
        """The contract's row."""
        read, beside = self.perplexity, self.full_perplexity
        return {
            "cache": self.cache,
            "note": self.note,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "positions_processed": self.positions_processed,
            "predicted_bytes": self.predicted_bytes,
            "measured_bytes": self.measured_bytes,
            "device_bytes": self.device_bytes,
            "host_bytes": self.host_bytes,
            "disk_bytes": self.disk_bytes,
            "prefill_bytes": self.prefill_bytes,
            "peak_rss_bytes": self.peak_bytes,
            "ttft_s": self.ttft_s,
            "itl_s": self.itl_s,
            "tokens_per_s": self.tokens_per_s,
            "perplexity": read.value if read else None,
            "perplexity_spread": read.spread if read else None,
            "perplexity_ratio": read.ratio(beside) if read and beside else None,
            "perplexity_ratio_spread": read.ratio_spread(beside) if read and beside else None,
            "recall": self.recall,
            "needles": [
                {"tokens": one.length, "depth": one.depth, "found": one.whole, "share": one.share}
                for one in self.found or ()
            ],
            "same_tokens": self.same_tokens,
            "identical_output": self.identical_output,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A batch with beginnings reused or not, and the simulator's figures of the same requests."""

    reuse: bool
    computed_tokens: int
    reused_tokens: int
    peak_blocks: int
    peak_bytes: int
    first_tokens_s: float
    simulated_computed_tokens: int
    simulated_reused_tokens: int
    simulated_peak_blocks: int
    equal_steps: bool
    identical_output: bool

    def to_dict(self) -> dict[str, Any]:
        """As a row."""
        return {
            "prefix_reuse": self.reuse,
            "computed_tokens": self.computed_tokens,
            "reused_tokens": self.reused_tokens,
            "peak_blocks": self.peak_blocks,
            "peak_bytes": self.peak_bytes,
            "first_tokens_s": self.first_tokens_s,
            "simulated": {
                "computed_tokens": self.simulated_computed_tokens,
                "reused_tokens": self.simulated_reused_tokens,
                "peak_blocks": self.simulated_peak_blocks,
                "equal_steps": self.equal_steps,
            },
            "identical_output": self.identical_output,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Requests with one system prompt through one pool, with reuse and without."""

    requests: int
    shared_tokens: int
    prompt_tokens: int
    output_tokens: int
    block_size: int
    sides: tuple[Side, ...]

    def to_dict(self) -> dict[str, Any]:
        """The answer's ``batch``."""
        return {
            "requests": self.requests,
            "shared_tokens": self.shared_tokens,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "block_size": self.block_size,
            "runs": [side.to_dict() for side in self.sides],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What is left of the full cache's own answers by a way to have fewer tokens.

    ``agreement`` is the share of the answers' tokens that still come first; ``perplexity`` that of
    the answers, which the full cache finds likely.
    """

    way: str
    kept_tokens: int
    agreement: float
    perplexity: float

    def to_dict(self) -> dict[str, Any]:
        """As a row."""
        return {
            "way": self.way,
            "kept_tokens": self.kept_tokens,
            "agreement": self.agreement,
            "perplexity": self.perplexity,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A cache's time between tokens with torch.compile or without; or why there is none."""

    cache: str
    compiled: bool
    itl_s: float | None
    compile_s: float | None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As a row."""
        return {
            "cache": self.cache,
            "torch_compile": self.compiled,
            "itl_s": self.itl_s,
            "compile_s": self.compile_s,
            "note": self.note,
        }
