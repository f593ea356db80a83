"""Distributions of lengths and times, as they are written on a command line.

    800   4k                             always the same
    uniform:800-1000                     each whole number alike
    lognormal:1000,0.8                   mean, sigma of the logarithm
    lognormal:median=900,p99=6000        by two of mean, median, sigma, p90, p95, p99
    normal:1000,200   exponential:1000   mean, deviation; mean
    empirical:FILE                       numbers in a file, one a line, as often as they are there
    empirical:TRACE#output               the prompts' (#prompt) or answers' (#output) lengths there

Every one has a mean, quantiles and samples. Needs numpy only where samples are drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol

from kvplan.core.errors import BadFile, BadValue, KvplanError
from kvplan.core.units import parse_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GRAMMAR = (
    "Write 800, uniform:800-1000, lognormal:MEAN,SIGMA, lognormal:median=900,p99=6000, "
    "normal:MEAN,DEVIATION, exponential:MEAN or empirical:FILE."
)
MOST = float(1 << 27)  # tokens of a request, seconds of a pause
NORMAL = NormalDist()


class Distribution(Protocol):
    """Positive numbers with a frequency each."""

    @property
    def mean(self) -> float:
        """What many of them average to."""
        ...

    def quantile(self, share: float) -> float:
        """The number that this share of all does not exceed; ``share`` from 0 to 1."""
        ...

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """So many numbers, drawn independently."""
        ...


def sample_tokens(
    of: Distribution, rng: np.random.Generator, count: int, least: int = 1
) -> NDArray[np.int64]:
    """Whole lengths of at least ``least`` tokens."""
    import numpy as np

    return np.clip(np.rint(of.sample(rng, count)), least, MOST).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    value: float

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    def quantile(self, share: float) -> float:
        """The value."""
        return self.value

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """The value, so often."""
        import numpy as np

        return np.full(count, self.value)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Each whole number from ``least`` to ``most`` alike, both among them."""

    least: int
    most: int

    @property
    def mean(self) -> float:
        """Half way."""
        return (self.least + self.most) / 2

    def quantile(self, share: float) -> float:
        """The whole number at this share of the way."""
        count = self.most - self.least + 1
        return float(self.least + min(count - 1, max(0, math.ceil(share * count) - 1)))

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Whole numbers."""
        return rng.integers(self.least, self.most, count, endpoint=True).astype(float)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """The exponential of a normal number of mean ``mu`` and deviation ``sigma``."""

    mu: float
    sigma: float

    @property
    def mean(self) -> float:
        """exp(mu + sigma² / 2)."""
        return math.exp(self.mu + self.sigma**2 / 2)

    def quantile(self, share: float) -> float:
        """exp(mu + sigma × the normal quantile), capped at 2^27."""
        if share <= 0:
            return 0.0
        tail = NORMAL.inv_cdf(share) if share < 1 else math.inf
        logarithm = self.mu + (self.sigma * tail if self.sigma else 0.0)
        return min(MOST, math.exp(min(logarithm, 700.0)))

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Independent draws."""
        return rng.lognormal(self.mu, self.sigma, count)


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal numbers, those below 0 taken as 0."""

    mean: float
    deviation: float

    def quantile(self, share: float) -> float:
        """The normal quantile, not below 0."""
        if not 0 < share < 1 or not self.deviation:
            return 0.0 if share <= 0 else MOST if share >= 1 else self.mean
        return max(0.0, NormalDist(self.mean, self.deviation).inv_cdf(share))

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Independent draws."""
        return rng.normal(self.mean, self.deviation, count).clip(0)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Pauses without memory."""

    mean: float

    def quantile(self, share: float) -> float:
        """-mean × ln(1 - share)."""
        return MOST if share >= 1 else -self.mean * math.log1p(-max(share, 0.0))

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Independent draws."""
        return rng.exponential(self.mean, count)


@dataclass(frozen=True)
class Empirical:
    """The values themselves, each as likely as any; ``source`` says whose they are."""

    values: tuple[float, ...]
    source: str

    @cached_property
    def ordered(self) -> list[float]:
        """Rising."""
        return sorted(self.values)

    @property
    def mean(self) -> float:
        """Of the values."""
        return math.fsum(self.values) / len(self.values)

    def quantile(self, share: float) -> float:
        """The least value that so many do not exceed."""
        place = math.ceil(share * len(self.values)) - 1
        return self.ordered[min(len(self.values) - 1, max(0, place))]

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Values, each draw from all of them."""
        import numpy as np

        return rng.choice(np.array(self.values), count)


def parse_distribution(text: str | int | float | Distribution, what: str) -> Distribution:
    """The distribution that a text spells; ``what`` names it in messages, as ``--prompt``.

    Raises:
        BadValue: no such spelling, or numbers that make none.
        SourceUnreachable: an empirical file that cannot be read.
    """
    if not isinstance(text, str | int | float):
        return text
    try:
        return _parse(str(text).strip())
    except KvplanError as error:
        raise type(error)(f"{what} {str(text)[:80]}: {error.message}", error.hint) from None
    except (ValueError, OverflowError, KeyError):
        raise BadValue(f"{what} {str(text)[:80]!r} is no distribution.", GRAMMAR) from None


def _parse(text: str) -> Distribution:
    kind, colon, rest = text.partition(":")
    if not colon:
        between = re.fullmatch(r"(\w+)-(\w+)", text)
        return _uniform(text) if between else Fixed(_number(text))
    if kind == "empirical":
        return _empirical(rest)
    return _KINDS[kind](rest)


def _number(text: str) -> float:
    """A number from 0 to 2^27; ``4k`` is 4096."""
    text = text.strip()
    number = float(parse_tokens(text)) if text[-1:].lower() in ("k", "m") else float(text)
    if not 0 <= number <= MOST:
        raise BadValue(f"{text} is outside 0 to {MOST:,.0f}.", GRAMMAR)
    return number


def _fixed(text: str) -> Fixed:
    return Fixed(_number(text))


def _uniform(text: str) -> Uniform:
    low, high = re.split(r"[-,]", text)
    least, most = _number(low), _number(high)
    if least > most or least != int(least) or most != int(most):
        raise BadValue("The ends are whole numbers, the first not above the second.", GRAMMAR)
    return Uniform(int(least), int(most))


def _normal(text: str) -> Normal:
    mean, deviation = map(_number, text.split(","))
    return Normal(mean, deviation)


def _exponential(text: str) -> Exponential:
    return Exponential(_number(text))


def _lognormal(text: str) -> LogNormal:
    """From its mean and sigma, or from any two of what describes it."""
    if "=" not in text:
        mean, sigma = text.split(",")
        return _solved({"mean": _number(mean), "sigma": _number(sigma)})
    named = {k.strip(): _number(v) for k, _, v in (one.partition("=") for one in text.split(","))}
    return _solved(named)


def _solved(named: Mapping[str, float]) -> LogNormal:
    """Of mu + sigma × z = ln(quantile) and mu + sigma² / 2 = ln(mean), two."""
    if len(named) != 2 or (named.get("sigma", 0.0) > 10):
        raise BadValue("Two of mean, median, sigma, p90, p95 and p99 make it.", GRAMMAR)
    if any(value <= 0 for name, value in named.items() if name != "sigma"):
        raise BadValue("A mean and a quantile are above 0.", GRAMMAR)
    at = {z: math.log(named[name]) for name, z in _TAILS.items() if name in named}
    if len(at) + len(named.keys() & {"mean", "sigma"}) != 2:
        raise KeyError
    if len(at) == 2:
        (z0, low), (z1, high) = sorted(at.items())
        sigma = (high - low) / (z1 - z0)
        mu = low - sigma * z0
    elif "sigma" in named:
        sigma = named["sigma"]
        mean = math.log(named["mean"]) - sigma**2 / 2 if "mean" in named else 0.0
        mu = next((level - sigma * z for z, level in at.items()), mean)
    else:
        # sigma² / 2 - z sigma + (ln quantile - ln mean) = 0, the smaller spread of the two.
        ((z, level),) = at.items()
        root = z * z - 2 * (level - math.log(named["mean"]))
        sigma = z - math.sqrt(root) if z else math.sqrt(root)
        mu = level - sigma * z
    if sigma < 0 or sigma > 10:
        raise BadValue("No lognormal distribution has these.", GRAMMAR)
    return LogNormal(mu, sigma)


_KINDS: dict[str, Callable[[str], Distribution]] = {
    "fixed": _fixed,
    "uniform": _uniform,
    "lognormal": _lognormal,
    "normal": _normal,
    "exponential": _exponential,
}
_TAILS = {"median": 0.0} | {f"p{n}": NORMAL.inv_cdf(n / 100) for n in (50, 75, 90, 95, 99)}


def _empirical(text: str) -> Empirical:
    """Numbers of a file, or a column of a trace."""
    from kvplan.simulation.traces.lines import lines_of

    name, _, column = text.partition("#")
    if column:
        return _of_trace(name, column)
    values: list[float] = []
    for number, line in lines_of(name):
        try:
            values.append(_number(line.decode("ascii", "replace").split(",")[0]))
        except (ValueError, BadValue):
            raise BadFile(
                f"Line {number:,} of {name} is no number from 0 to {MOST:,.0f}.",
                "Of a trace name a column: empirical:FILE#prompt or #output.",
            ) from None
        if len(values) > 10_000_000:
            raise BadFile(f"{name} has more than 10,000,000 numbers.")
    if not values:
        raise BadFile(f"{name} has no numbers.")
    return Empirical(tuple(values), name)


def _of_trace(name: str, column: str) -> Empirical:
    from kvplan.simulation.traces import read_traffic

    traffic = read_traffic(name)
    columns: dict[str, Any] = {"prompt": traffic.prompt_tokens, "output": traffic.output_tokens}
    if column not in columns:
        raise BadValue(f"A trace has no #{column[:40]}.", "There are #prompt and #output.")
    return Empirical(tuple(map(float, columns[column])), f"{name}#{column}")
