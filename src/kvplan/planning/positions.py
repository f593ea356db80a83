"""Positions that a model processes to answer: with and without a cache, with and without reuse.

Without a cache every step reads the prompt and all tokens before it again; with one a step reads
its own token. A prefix that requests share is read once where its cache is reused.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count, parse_tokens

MAX_REQUESTS = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Positions processed for one request, and for the shared prefix of several."""

    prompt: int
    output: int
    requests: int
    shared_prefix: int

    @property
    def without_cache(self) -> int:
        """Each of the ``output`` steps reads the prompt and what was written before it."""
        return self.prompt * self.output + self.output * (self.output - 1) // 2

    @property
    def with_cache(self) -> int:
        """The prompt once, then a token a step; the first token comes out of the prompt's pass."""
        return self.prompt + max(0, self.output - 1)

    def to_dict(self) -> dict[str, int]:
        """The contract's ``positions`` object."""
        return asdict(self) | {
            "without_cache": self.without_cache,
            "with_cache": self.with_cache,
            "prompt_visits_without_cache": self.prompt * self.output,
            "prompt_visits_with_cache": self.prompt,
            "prefix_visits_without_reuse": self.requests * self.shared_prefix,
            "prefix_visits_with_reuse": self.shared_prefix,
        }


def count_positions(
    prompt: int | str | None,
    output: int | str | None,
    requests: int | str = 1,
    shared_prefix: int | str | None = None,
) -> Positions | None:
    """The positions of a question that asks for them, else None.

    Raises:
        BadValue: an output without a prompt, requests that share nothing, or none.
    """
    count = parse_count(requests, "--requests", MAX_REQUESTS)
    if output is not None and prompt is None:
        raise BadValue("--output needs --prompt: the tokens that the answer follows.")
    if count > 1 and shared_prefix is None:
        raise BadValue("--requests needs --shared-prefix: the tokens that they share.")
    if prompt is None and shared_prefix is None:
        return None
    return Positions(
        prompt=parse_tokens(prompt or 0),
        output=parse_tokens(1 if output is None else output),
        requests=count,
        shared_prefix=parse_tokens(shared_prefix or 0),
    )
