"""Every card, checkpoint, layout and cache format that is allowed, each on the fewest replicas.

What cannot win is left out by facts that never change: weights that are more than the cards hold,
formats without kernels, layouts that flags rule out. Everything else is planned, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Final, NamedTuple

from kvplan.core.device import Device
from kvplan.core.measured import Calibration
from kvplan.core.model import Model
from kvplan.engines.base import Engine
from kvplan.engines.names import LAYERED
from kvplan.engines.registry import engine_of
from kvplan.planning.advise.candidate import Candidate, Sized, size
from kvplan.planning.advise.goal import Goal, Traffic
from kvplan.planning.advise.outcome import Outcome, least
from kvplan.planning.advise.serving import (
    CACHE,
    GAIN,
    SQUEEZED,
    Layout,
    layouts,
    ranks_of,
)
from kvplan.planning.advise.variants import Variant, variants
from kvplan.planning.cost.pricing import Pricing, Rate
from kvplan.planning.support import (
    DATACENTRE,
    FALLBACK,
    host_cards,
    refusal,
    takes_fp8_cache,
    weights_refusal,
)

RANK_WORDS: Final = ("tensor", "tp", "pipeline", "pp", "data", "dp", "expert", "ep")


class Refused(NamedTuple):
    """A card on which nothing could be planned, and why."""

    device: Device
    model: Model
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What may be chosen. ``engine`` None is vLLM, and llama.cpp where that does not run on a card
    that was ``named``.
    """

    models: tuple[Model, ...]
    devices: tuple[Device, ...]
    named: bool
    engine: str | None
    version: str | None
    pricing: Pricing
    quantise: bool
    given: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None

    def engine_on(self, device: Device) -> tuple[Engine | None, str]:
        """The engine of a card, or why there is none."""
        name = self.engine or "vllm"
        why = refusal(name, device)
        if why is None:
            return engine_of(name), ""
        if self.named and self.engine is None and refusal(FALLBACK, device) is None:
            return engine_of(FALLBACK), ""
        return None, why


class Found(NamedTuple):
    """Every candidate on its fewest replicas, and the cards on which there was none."""

    outcomes: list[Outcome]
    refused: list[Refused]


def sized(space: Space, goal: Goal) -> tuple[list[Sized], list[Refused]]:
    """Every candidate of the space, planned."""
    found: list[Sized] = []
    refused: list[Refused] = []
    for model in space.models:
        longest = model.max_context_tokens
        traffic = goal.traffic(longest)
        if longest is not None and traffic.peak_tokens > longest:
            why = f"{traffic.peak_tokens:,} tokens are more than the {longest:,} that it declares"
            refused += [Refused(device, model, why) for device in space.devices]
            continue
        of_model = _OfModel(space, goal, model, traffic)
        for device in space.devices:
            candidates, why = of_model.on(device)
            found += candidates
            if not candidates:
                refused.append(Refused(device, model, why))
    return found, refused


def search(space: Space, goal: Goal) -> Found:
    """The space against the goal."""
    planned, refused = sized(space, goal)
    return Found([least(one, goal) for one in planned], refused)


class _OfModel:
    """The candidates of one model on one card after the other; its copies are read once."""

    def __init__(self, space: Space, goal: Goal, model: Model, traffic: Traffic) -> None:
        self.space, self.goal, self.model, self.traffic = space, goal, model, traffic
        self._variants: dict[str, list[Variant]] = {}

    def variants(self, engine: str) -> list[Variant]:
        """What an engine may serve of the model."""
        if engine not in self._variants:
            found = variants(self.model, engine, quantise=self.space.quantise)
            self._variants[engine] = list(found)
        return self._variants[engine]

    def on(self, device: Device) -> tuple[list[Sized], str]:
        """The candidates on a card, and why there are none."""
        engine, why = self.space.engine_on(device)
        if engine is None:
            return [], why
        found: list[Sized] = []
        why = _too_large(device, engine, self.goal)
        for variant in self.variants(engine.name):
            unserved = engine.name in DATACENTRE and weights_refusal(device, variant.stored)
            if unserved:
                why = unserved
                continue
            for layout in _layouts(self.space, self.goal, variant, device, engine):
                rate = self.space.pricing.rate(device, min(layout.cards, host_cards(device)))
                for candidate in _caches(self.space, device, engine, variant, layout):
                    found += self._sized(candidate, rate)
        return found, why

    def _sized(self, candidate: Candidate, rate: Rate | None) -> Iterator[Sized]:
        """The candidate, and squeezed where that may save a replica."""
        one = size(candidate, self.goal, self.traffic, rate)
        yield one
        flags = SQUEEZED.get(candidate.engine.name, {})
        if flags and not flags.keys() & self.space.given.keys() and self._is_short(one):
            yield size(replace(candidate, squeezed=True), self.goal, self.traffic, rate)

    def _is_short(self, one: Sized) -> bool:
        """Whether a few sequences more would take fewer replicas, or one card less to start."""
        if one.load is None:
            return one.plan is not None and one.plan.model.weights is not None
        users = self.goal.users
        if users is None:
            return False
        return ceil(users / (one.sequences * GAIN)) < ceil(users / one.sequences)


def _too_large(device: Device, engine: Engine, goal: Goal) -> str:
    """Why no layout is left: weights that are more than the most cards of a replica hold."""
    host = host_cards(device)
    most = min(goal.max_gpus, host if engine.name in LAYERED else 2 * host if host > 1 else 1)
    return f"the weights do not fit in {most:,} of these" if most > 1 else "the weights do not fit"


def _layouts(
    space: Space, goal: Goal, variant: Variant, device: Device, engine: Engine
) -> Iterator[Layout]:
    """Those whose cards hold the weights at all, and that agree with the flags that were given."""
    weights = variant.model.weights
    stored = weights.num_bytes if weights and not variant.flags else 0
    given = {flag: value for flag, value in space.given.items() if _is_of_ranks(flag)}
    for layout in layouts(variant.model, engine.name, device, goal.max_gpus):
        if stored > layout.cards * (device.memory_bytes or 0):
            continue
        asked = ranks_of(engine.name, layout)
        if all(asked.get(flag, 1) == value for flag, value in given.items()):
            yield layout


def _is_of_ranks(flag: str) -> bool:
    parts = flag.lstrip("-").split("-")
    return parts[-1] in ("size", "parallel") and any(word in RANK_WORDS for word in parts)


def _caches(
    space: Space, device: Device, engine: Engine, variant: Variant, layout: Layout
) -> Iterator[Candidate]:
    """The layout with the cache as the checkpoint has it, and with 8 bits where they are served."""
    flags = CACHE.get(engine.name, {})
    free = not any(flag in space.given for flag in flags)
    small = takes_fp8_cache(engine.name, device) or engine.name in LAYERED
    own = variant.model.traits.kv_cache_format
    for eight in (False, True) if free and small and flags and not own else (False,):
        yield Candidate(
            device=device,
            engine=engine,
            version=space.version,
            variant=variant,
            layout=layout,
            small_cache=eight,
            given=space.given,
            calibration=space.calibration,
        )
