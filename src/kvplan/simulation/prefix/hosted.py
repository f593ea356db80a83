"""What a hosted API counts as cached of the same prompts, and what that saves.

An API takes a beginning for cached only from so many tokens on, and in steps; the rules and where
they are written are in ``data/prompt_caching.json``, the prices those of ``planning.cost.hosted``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kvplan.core.errors import UnknownName
from kvplan.planning.cost.hosted import Hosted, Request, hosted
from kvplan.simulation.prefix.answer import PrefixAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """From how many tokens on a beginning counts, in which steps, and who says so."""

    provider: str
    minimum_tokens: int
    step_tokens: int
    note: str
    source: str

    def counted(self, seen: int, prompt: int) -> int:
        """Tokens billed as cached of a prompt whose first ``seen`` were sent before."""
        least = min(seen, prompt)
        if least < self.minimum_tokens:
            return 0
        steps = (least - self.minimum_tokens) // self.step_tokens
        return self.minimum_tokens + steps * self.step_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The input of all requests at an API: as they are, without caching, and reordered."""

    model: str
    caching: Caching
    cached_tokens: int
    cost: float
    cost_without_caching: float
    cost_reordered: float | None
    currency: str
    source: str

    def to_dict(self) -> dict[str, Any]:
        """The ``api`` object."""
        return {
            "provider": self.caching.provider,
            "model": self.model,
            "minimum_tokens": self.caching.minimum_tokens,
            "step_tokens": self.caching.step_tokens,
            "cached_tokens": self.cached_tokens,
            "cost": self.cost,
            "cost_without_caching": self.cost_without_caching,
            "cost_reordered": self.cost_reordered,
            "currency": self.currency,
            "note": self.caching.note,
            "sources": [self.source, self.caching.source],
        }


@cache
def _rows() -> list[dict[str, Any]]:
    text = files("kvplan").joinpath("data/prompt_caching.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def caching_of(name: str) -> Caching:
    """The rule of a hosted model, ``provider/model`` or a model; the first row whose words it has.

    Raises:
        UnknownName: a provider whose rule is not known.
    """
    provider, slash, model = name.lower().partition("/")
    if not slash:
        nothing = Request(prompt_tokens=0.0, output_tokens=0.0, cached_tokens=0.0)
        provider, model = hosted(name, nothing).provider.lower(), provider
    for row in _rows():
        if row["provider"] == provider and all(word in model for word in row["words"]):
            return Caching(
                provider=provider,
                minimum_tokens=row["minimum_tokens"],
                step_tokens=row["step_tokens"],
                note=row["note"],
                source=row["source"],
            )
    known = sorted({row["provider"] for row in _rows()})
    raise UnknownName("API with a rule of caching", name[:60], (), f"Known: {', '.join(known)}.")


def bill(name: str, answer: PrefixAnswer) -> Bill:
    """What the prompts that count cost.

    Raises:
        UnknownName: an API or a model that is not known.
        BadValue: the ``prices`` extra is not installed.
    """
    caching, prompts = caching_of(name), answer.lengths
    cached = _counted(caching, answer.counted(answer.seen), prompts)
    asked, moved = _priced(name, prompts, cached), answer.reordered
    other = None
    if moved is not None:
        later = _counted(caching, answer.counted(moved.seen), prompts)
        other = _priced(name, prompts, later).least * len(prompts)
    return Bill(
        model=asked.model,
        caching=caching,
        cached_tokens=cached,
        cost=asked.least * len(prompts),
        cost_without_caching=asked.per_request * len(prompts),
        cost_reordered=other,
        currency=asked.currency,
        source=asked.source,
    )


def _counted(caching: Caching, seen: Sequence[int], prompts: Sequence[int]) -> int:
    return sum(map(caching.counted, seen, prompts))


def _priced(name: str, prompts: Sequence[int], cached: int) -> Hosted:
    """The mean request, its input alone."""
    count = len(prompts)
    request = Request(
        prompt_tokens=sum(prompts) / count,
        output_tokens=0.0,
        cached_tokens=cached / count,
    )
    return hosted(name, request)
