"""Every card, checkpoint, layout and cache format that is allowed, each on the fewest replicas.

What cannot win is left out by facts that never change: weights that are more than the cards hold,
formats without kernels, layouts that flags rule out. Everything else is planned, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kvplan.core.device import Device
from kvplan.core.measured import Calibration
from kvplan.core.model import Model
from kvplan.engines.base import Engine
from kvplan.engines.registry import engine_of
from kvplan.planning.advise.candidate import Candidate, Sized, size
from kvplan.planning.advise.goal import Goal, Traffic
from kvplan.planning.advise.outcome import Outcome, least
from kvplan.planning.advise.serving import (
    CACHE,
    LAYERED,
    Layout,
    host_cards,
    layouts,
    ranks_of,
)
from kvplan.planning.advise.support import (
    DATACENTRE,
    FALLBACK,
    refusal,
    takes_fp8_cache,
    weights_refusal,
)
from kvplan.planning.advise.variants import Variant, variants
from kvplan.planning.cost.pricing import Pricing

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
        for device in space.devices:
            before = len(found)
            engine, why = space.engine_on(device)
            if engine is not None:
                why = _on_device(space, goal, traffic, model, device, engine, found)
            if len(found) == before:
                refused.append(Refused(device, model, why))
    return found, refused


def search(space: Space, goal: Goal) -> Found:
    """The space against the goal."""
    planned, refused = sized(space, goal)
    return Found([least(one, goal) for one in planned], refused)


def _on_device(
    space: Space,
    goal: Goal,
    traffic: Traffic,
    model: Model,
    device: Device,
    engine: Engine,
    found: list[Sized],
) -> str:
    """Adds the candidates of one card; says why there are none."""
    host = host_cards(device)
    most = min(goal.max_gpus, host if engine.name in LAYERED else 2 * host if host > 1 else 1)
    why = f"the weights do not fit in {most:,} of these" if most > 1 else "the weights do not fit"
    for variant in variants(model, engine.name, quantise=space.quantise):
        if engine.name in DATACENTRE:
            unserved = weights_refusal(device, variant.stored)
            if unserved:
                why = unserved
                continue
        for layout in _layouts(space, goal, variant, device, engine):
            rate = space.pricing.rate(device, min(layout.cards, host_cards(device)))
            found.extend(
                size(candidate, goal, traffic, rate)
                for candidate in _caches(space, device, engine, variant, layout)
            )
    return why


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
