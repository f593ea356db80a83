"""What a hosted API asks for the same requests, with and without its prompt caching.

Prices are those of the ``genai-prices`` package (the ``prices`` extra), from the snapshot that
ships in it: nothing is downloaded. They are in US dollars.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kvplan.core.errors import UnknownName, not_installed

HOUR_S: Final = 3600.0
NOON: Final = 12  # UTC; some providers ask less at night
NEAREST: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One average request: its tokens, and those of its prompt that were sent before."""

    prompt_tokens: float
    output_tokens: float
    cached_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """An API's price of one request in ``currency``.

    ``per_request_cached`` is with the repeated tokens at the price of a cache read, None where the
    API has no such price or nothing repeats; writes to a cache are at the price of the input.
    """

    provider: str
    model: str
    currency: str
    per_request: float
    per_request_cached: float | None
    source: str

    @property
    def least(self) -> float:
        """What a request costs with whatever caching there is."""
        cached = self.per_request_cached
        return self.per_request if cached is None else min(self.per_request, cached)

    def per_hour(self, requests_per_s: float) -> float:
        """What such a load costs for an hour."""
        return self.least * requests_per_s * HOUR_S

    def break_even(self, cost_per_hour: float, *, cached: bool = True) -> float | None:
        """Requests a second from which on cards of this hourly cost are the cheaper way, against
        the API with its prompt caching or without.
        """
        price = self.least if cached else self.per_request
        return cost_per_hour / (price * HOUR_S) if price else None

    def to_dict(self) -> dict[str, Any]:
        """Its figures."""
        return {name: getattr(self, name) for name in self.__slots__}


def hosted(name: str, request: Request, *, currency: str = "USD", dollars: float = 1.0) -> Hosted:
    """An API's price of a request; ``name`` is a model, or ``provider/model``.

    Raises:
        BadValue: the ``prices`` extra is not installed.
        UnknownName: no API has a model of this name.
    """
    try:
        import genai_prices
    except ImportError:
        raise not_installed("The price of an API needs the prices extra", "prices") from None
    plain = _price(genai_prices, name, request, cached=0.0)
    cached = _price(genai_prices, name, request, cached=request.cached_tokens)
    caches = request.cached_tokens > 0 and cached.model_price.cache_read_mtok is not None
    return Hosted(
        provider=plain.provider.name,
        model=plain.model.name or plain.model.id,
        currency=currency,
        per_request=float(plain.total_price) * dollars,
        per_request_cached=float(cached.total_price) * dollars if caches else None,
        source=f"genai-prices {genai_prices.__version__} (no date of its own)",
    )


def _price(prices: Any, name: str, request: Request, *, cached: float) -> Any:
    """The package's calculation, at noon: it knows prices by the hour of the day."""
    usage = prices.Usage(
        input_tokens=round(request.prompt_tokens),
        output_tokens=round(request.output_tokens),
        cache_read_tokens=round(cached),
    )
    provider, slash, model = name.partition("/")
    at = datetime.now(tz=UTC).replace(hour=NOON, minute=0, second=0, microsecond=0)
    for ref, of in ((name, None), (model, provider) if slash else (name, None)):
        try:
            return prices.calc_price(usage, ref, provider_id=of, genai_request_timestamp=at)
        except LookupError:
            continue
    raise UnknownName("hosted model", name[:80], _near(name), "As --api openai/gpt-5-mini.")


def _near(name: str) -> list[str]:
    """Hosted models with the most similar names."""
    import difflib

    from genai_prices.data import providers

    known = {f"{p.id}/{m.id}" for p in providers for m in p.models}
    short = {full.partition("/")[2]: full for full in sorted(known)}
    close = difflib.get_close_matches(name.lower().rpartition("/")[2], short, n=NEAREST, cutoff=0.6)
    return [short[key] for key in close]
