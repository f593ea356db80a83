"""A hosted API's price of the same requests, by the snapshot that the package ships."""

from __future__ import annotations

import sys

import pytest

from kvplan.core.errors import BadValue, UnknownName
from kvplan.planning.cost.hosted import Request, hosted

REQUEST = Request(prompt_tokens=1000, output_tokens=100, cached_tokens=800)


def test_a_request_by_the_million() -> None:
    """GPT-5 mini: 0.25 in, 2 out, 0.025 for what was sent before, dollars a million."""
    found = hosted("openai/gpt-5-mini", REQUEST)

    assert pytest.approx(1000 * 0.25e-6 + 100 * 2e-6) == found.per_request
    assert pytest.approx(200 * 0.25e-6 + 800 * 0.025e-6 + 100 * 2e-6) == found.per_request_cached
    assert found.least == found.per_request_cached
    assert "genai-prices" in found.source


def test_nothing_repeats() -> None:
    """Without repeated tokens there is no price with caching."""
    found = hosted("gpt-5-mini", Request(prompt_tokens=10, output_tokens=1, cached_tokens=0))

    assert found.per_request_cached is None


def test_break_even() -> None:
    """At the break-even load the API's hour is the cards' hour."""
    found = hosted("gpt-5-mini", REQUEST)
    rate = found.break_even(4.0)

    assert rate is not None
    assert pytest.approx(4.0) == found.per_hour(rate)


def test_break_even_without_caching() -> None:
    """Against the plain price fewer requests are enough, by the quotient of the two prices."""
    found = hosted("gpt-5-mini", REQUEST)
    plain, cached = found.break_even(4.0, cached=False), found.break_even(4.0)

    assert plain is not None
    assert cached is not None
    assert found.per_request_cached is not None
    assert pytest.approx(plain / cached) == found.per_request_cached / found.per_request


def test_another_currency() -> None:
    """Dollars times the rate."""
    rupees = hosted("gpt-5-mini", REQUEST, currency="INR", dollars=84)

    assert pytest.approx(84 * hosted("gpt-5-mini", REQUEST).per_request) == rupees.per_request


def test_a_model_that_nobody_hosts() -> None:
    """Near names are proposed."""
    with pytest.raises(UnknownName) as found:
        hosted("openai/gpt-5-minni", REQUEST)

    assert "openai/gpt-5-mini" in str(found.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says what to install."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(BadValue, match=r"pip install 'kvplan\[prices\]'"):
        hosted("gpt-5-mini", REQUEST)
