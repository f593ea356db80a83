"""What is asked of a deployment: who comes, how long their requests are, how fast, for how much.

Two ways to say who comes:

    --users N     so many requests in flight, each followed by the next (after --think)
    --rate R      requests a second, whoever sends them

and two to say what they bring:

    --context C                 conversations of up to C tokens whose history stays cached: a turn
                                computes TURN_TOKENS new ones; time to first token is judged on the
                                worst turn, a whole context that is not cached any more
    --prompt D --output D       requests of these lengths, all of it new but for what --hit-rate and
                                --shared-prefix say
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count, parse_tokens
from kvplan.planning.amounts import (
    parse_budget,
    parse_pause,
    parse_percentile,
    parse_rate,
    parse_seconds,
    parse_share,
)
from kvplan.simulation.lengths import MOST, Distribution, Fixed, parse_distribution

TURN_TOKENS: Final = 1024
USUAL_OUTPUT: Final = 512
USUAL_CONTEXT: Final = 32768
USUAL_PERCENTILE: Final = 0.95
ALL_BUT_FEW: Final = 0.999  # of lengths without a maximum
MOST_USERS: Final = 1 << 20
GRID: Final = 64  # quantiles of each length that a sum is worked out from


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The question as it was asked; a goal that is None binds nothing.

    ``percentile`` is of requests, for both times; ``size_at`` of lengths, None for the peak.
    ``sure`` asks that times hold at the upper end of the estimate's band.
    """

    users: int | None = None
    rate_per_s: float | None = None
    think_s: float = 0.0
    context: int | None = None
    prompt: Distribution | None = None
    output: Distribution | None = None
    shared_prefix: int = 0
    hit_rate: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    percentile: float = USUAL_PERCENTILE
    budget_per_hour: float | None = None
    max_gpus: int = 32
    size_at: float | None = None
    sure: bool = False
    said: dict[str, Any] = field(default_factory=dict)

    def traffic(self, longest: int | None) -> Traffic:
        """The goal's requests for a model that takes ``longest`` tokens at most.

        Raises:
            BadValue: a context that leaves no room for an answer, or lengths that no model takes.
        """
        if self.prompt is None:
            return self._conversations(longest)
        output = self.output or Fixed(USUAL_OUTPUT)
        peak = self.context or _bounded(_peak(self.prompt) + _peak(output), longest)
        mean = self.prompt.mean + output.mean
        fresh = self._fresh(self.prompt.mean)
        judged = self._fresh(min(self.prompt.quantile(self.percentile), peak))
        return Traffic(
            prompt=self.prompt,
            output=output,
            peak_tokens=peak,
            sized_tokens=self._sized(self.prompt, output, peak),
            mean_tokens=min(mean - output.mean / 2, peak),
            fresh_tokens=fresh,
            judged_tokens=judged,
            warm_tokens=fresh,
            prompt_tokens=self.prompt.mean,
            output_tokens=output.mean,
        )

    def _conversations(self, longest: int | None) -> Traffic:
        """Whole contexts with their history cached."""
        context = self.context or min(USUAL_CONTEXT, longest or USUAL_CONTEXT)
        output = self.output or Fixed(min(USUAL_OUTPUT, max(1, context // 4)))
        answer = min(output.mean, context - 1)
        prompt = context - answer
        if prompt < 1 or self.shared_prefix >= context:
            raise BadValue(f"A context of {context:,} tokens has no room for prompt and answer.")
        turn = min(TURN_TOKENS, prompt) if self.hit_rate is None else self._fresh(prompt)
        return Traffic(
            prompt=Fixed(prompt),
            output=output,
            peak_tokens=context,
            sized_tokens=context,
            mean_tokens=context - answer / 2,
            fresh_tokens=turn,
            judged_tokens=self._fresh(prompt),
            warm_tokens=turn,
            prompt_tokens=prompt,
            output_tokens=answer,
        )

    def _fresh(self, prompt: float) -> float:
        """Tokens of a prompt that no cache has."""
        own = max(prompt - self.shared_prefix, 1.0)
        return max(own * (1 - (self.hit_rate or 0.0)), 1.0)

    def _sized(self, prompt: Distribution, output: Distribution, peak: int) -> int:
        """The length that every sequence is given room for."""
        if self.size_at is None:
            return peak
        return min(peak, max(1, round(quantile_of_sum(prompt, output, self.size_at))))

    def to_dict(self) -> dict[str, Any]:
        """The JSON's ``goal``: what was asked, in base units."""
        return {
            "users": self.users,
            "rate_per_s": self.rate_per_s,
            "think_s": self.think_s,
            "context_tokens": self.context,
            "ttft_s": self.ttft_s,
            "tpot_s": self.tpot_s,
            "percentile": self.percentile,
            "budget_per_hour": self.budget_per_hour,
            "shared_prefix": self.shared_prefix,
            "hit_rate": self.hit_rate,
            "max_gpus": self.max_gpus,
            "size_at": self.size_at,
            "sure": self.sure,
        } | self.said


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The goal's requests in numbers.

    ``sized_tokens`` is what each sequence is given room for, ``mean_tokens`` what it holds half way
    through its answer. ``fresh_tokens`` are computed for an average request, ``judged_tokens`` for
    the one whose time to first token is judged, ``warm_tokens`` for one whose history is cached.
    """

    prompt: Distribution
    output: Distribution
    peak_tokens: int
    sized_tokens: int
    mean_tokens: float
    fresh_tokens: float
    judged_tokens: float
    warm_tokens: float
    prompt_tokens: float
    output_tokens: float

    @property
    def is_judged_cold(self) -> bool:
        """Whether the judged request is a rare one, beside which a usual one is shown."""
        return self.judged_tokens > self.warm_tokens and isinstance(self.prompt, Fixed)


def read_goal(
    *,
    users: int | str | None = None,
    rate: float | str | None = None,
    think: float | str | None = None,
    context: int | str | None = None,
    prompt: str | float | Distribution | None = None,
    output: str | float | Distribution | None = None,
    shared_prefix: int | str | None = None,
    hit_rate: float | str | None = None,
    ttft: float | str | None = None,
    tpot: float | str | None = None,
    percentile: float | str | None = None,
    budget: float | str | None = None,
    max_gpus: int | str | None = None,
    size_at: float | str | None = None,
    sure: bool = False,
) -> Goal:
    """The goal with every value read.

    Raises:
        BadValue: a value that cannot be read, or users beside a rate.
    """
    if users is not None and rate is not None:
        raise BadValue("--users and --rate are two ways to say who comes.", "Give one of them.")
    if rate is not None and think is not None:
        raise BadValue("--think is a pause of --users; a rate has none.", "Leave it away.")
    given = {"prompt": prompt, "output": output}
    return Goal(
        users=None
        if rate is not None
        else parse_count(1 if users is None else users, "--users", MOST_USERS),
        rate_per_s=None if rate is None else parse_rate(rate),
        think_s=0.0 if think is None else parse_pause(think, "--think"),
        context=None if context is None else _length(context, "--context"),
        prompt=None if prompt is None else _lengths(prompt, "--prompt"),
        output=None if output is None else _lengths(output, "--output"),
        shared_prefix=parse_tokens(shared_prefix or 0),
        hit_rate=None if hit_rate is None else parse_share(hit_rate, "--hit-rate"),
        ttft_s=None if ttft is None else parse_seconds(ttft, "--ttft"),
        tpot_s=None if tpot is None else parse_seconds(tpot, "--tpot"),
        percentile=USUAL_PERCENTILE
        if percentile is None
        else parse_percentile(percentile, "--percentile"),
        budget_per_hour=None if budget is None else parse_budget(budget),
        max_gpus=32 if max_gpus is None else parse_count(max_gpus, "--max-gpus", 4096),
        size_at=None if size_at is None else parse_percentile(size_at, "--size-at"),
        sure=bool(sure),
        said={k: _spelled(v) for k, v in given.items()},
    )


def _spelled(given: str | float | Distribution | None) -> str | None:
    """Lengths as they were given; those of a trace by their source."""
    if given is None:
        return None
    return str(getattr(given, "source", given))[:200]


def _length(given: int | str, flag: str) -> int:
    tokens = parse_tokens(given)
    if tokens < 2:
        raise BadValue(f"{flag} {tokens} holds no prompt and answer.", "Give a length such as 32k.")
    return tokens


def _lengths(given: str | float | Distribution, flag: str) -> Distribution:
    found = parse_distribution(given, flag)
    if found.mean < 1:
        raise BadValue(f"{flag} {str(given)[:40]} is less than a token.")
    return found


def _peak(lengths: Distribution) -> float:
    """The longest there is; of those without a maximum what all but a thousandth stay below."""
    longest = lengths.quantile(1.0)
    return longest if longest < MOST else lengths.quantile(ALL_BUT_FEW)


def _bounded(tokens: float, longest: int | None) -> int:
    found = max(2, round(tokens))
    return found if longest is None else min(found, longest)


def quantile_of_sum(one: Distribution, other: Distribution, share: float) -> float:
    """The quantile of two independent lengths together, from a grid of their quantiles."""
    places = [(2 * i + 1) / (2 * GRID) for i in range(GRID)]
    sums = sorted(one.quantile(x) + other.quantile(y) for x in places for y in places)
    return sums[min(len(sums) - 1, int(share * len(sums)))]
