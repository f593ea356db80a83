"""A capacity question: a model on a node under some flags, every value read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvplan.core.device import Device
from kvplan.core.errors import BadValue
from kvplan.core.measured import Calibration
from kvplan.core.model import Model
from kvplan.core.units import (
    GIB,
    format_bytes,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_tokens,
)
from kvplan.engines.base import Asked, Engine, Node
from kvplan.engines.names import DEFAULT_ENGINE
from kvplan.engines.registry import engine_of
from kvplan.engines.weight_words import said_of_word
from kvplan.planning.cost.pricing import LIST, Pricing
from kvplan.planning.speed.measured import check, read_calibration
from kvplan.planning.support import beyond_a_host, too_old
from kvplan.readers import mig, unified
from kvplan.readers.devices import find_device
from kvplan.readers.families.base import Options
from kvplan.readers.host_links import HostLink, host_link
from kvplan.readers.open_model import ModelSource, open_model

USUAL_CONTEXT = 32768
USUAL_CONTEXT_SOURCE = "default: 32k, or the model's or the engine's maximum if less"
MAX_GPUS = 4096
MAX_CONCURRENCY = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What ``fit`` answers: an engine's plan is asked of these, and read at these rates.

    ``sources`` say where each value that is no engine flag is from.
    """

    model: Model
    node: Node
    engine: Engine
    asked: Asked
    bandwidth_bytes_per_s: int | None
    host_link: HostLink | None
    pricing: Pricing
    sources: Mapping[str, tuple[object, str]]
    warnings: tuple[str, ...]


def ask(
    model: ModelSource,
    *,
    gpu: str | None = None,
    gpus: int = 1,
    engine: str = DEFAULT_ENGINE,
    engine_version: str | None = None,
    context: int | str | None = None,
    concurrency: int | None = None,
    weights_bytes: int | str | None = None,
    gpu_memory: int | str | None = None,
    free_memory: int | str | None = None,
    bandwidth: int | str | None = None,
    host_bandwidth: int | str | None = None,
    kv_pool: int | str | None = None,
    shared_prefix: int | str | None = None,
    pricing: Pricing = LIST,
    set: Mapping[str, Any] | None = None,
    encoder_tokens: int | str | None = None,
    assume: str = "",
    offline: bool = False,
    calibration: str | Path | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Question:
    """The question with every value read.

    Raises:
        BadQuestion: a value that cannot be read, or a card whose memory is not known.
    """
    length = None if encoder_tokens is None else parse_tokens(encoder_tokens)
    found = open_model(
        model, overrides=set, options=Options(encoder_tokens=length), assume=assume, offline=offline
    )
    cards = parse_count(gpus, "--gpus", MAX_GPUS)
    spoken = engine_of(engine)
    device, said = device_named(gpu, gpu_memory)
    parsed = spoken.flags.parse(flags or {})
    bound = spoken.asked_length(parsed)
    tokens = _usual_context(found, bound) if context is None else parse_tokens(context)
    if tokens < 1:
        raise BadValue("--context 0 holds no conversation.", "Give a length such as 32k.")
    prefix = _prefix(shared_prefix, tokens)
    rate = device.bandwidth_bytes_per_s if bandwidth is None else _bandwidth(bandwidth)
    memory = device.memory_bytes or 0
    free = None if free_memory is None else _free(parse_bytes(free_memory), memory)
    if device.sliced and cards > 1:
        raise BadValue(mig.ALONE.format(device.title), "Ask of one; each can serve a copy.")
    return Question(
        model=found,
        node=Node(device=device, gpus=cards, memory_bytes=memory, free_bytes=free),
        engine=spoken,
        asked=Asked(
            context=tokens,
            concurrency=_wanted(concurrency),
            version=engine_version,
            flags=parsed,
            pool_bytes=None if kv_pool is None else parse_bytes(kv_pool),
            weights_bytes=None if weights_bytes is None else parse_bytes(weights_bytes),
            shared_prefix=prefix,
            calibration=_calibration(calibration, spoken.name, device.name),
        ),
        bandwidth_bytes_per_s=rate or None,
        host_link=_host_link(device, host_bandwidth),
        pricing=pricing,
        sources={
            "--gpu-memory": _origin(gpu_memory, memory, device.memory_note or "device table"),
            "--bandwidth": _origin(bandwidth, rate, device.bandwidth_note or "device table"),
            "--context": _origin(context, tokens, USUAL_CONTEXT_SOURCE),
            **_own_card(device),
        },
        warnings=(
            *found.warnings,
            *said,
            *([unified.SHARED.format(device.title)] if _shares(device, free) else []),
            *_vendor_warning(spoken, device),
            *_host_warning(device, cards),
            *([] if pricing is LIST else pricing.untold([device])),
            *_context_warning(found, tokens),
            *_memory_unit_warning(gpu_memory),
            *_pool_warning(kv_pool, memory),
            *_stored_warning(found, spoken, parsed),
        ),
    )


def _own_card(device: Device) -> dict[str, tuple[object, str]]:
    """The card, where it is one's own: its name says nothing to anybody else."""
    source = device.sources.get("card")
    return {} if source is None else {"--gpu": (device.name, source)}


def _calibration(folder: str | Path | None, engine: str, device: str) -> Calibration | None:
    if folder is None:
        return None
    found = read_calibration(folder)
    check(found, engine, device)
    return found


def _wanted(concurrency: int | None) -> int | None:
    if concurrency is None:
        return None
    return parse_count(concurrency, "--concurrency", MAX_CONCURRENCY)


def _prefix(given: int | str | None, context: int) -> int:
    prefix = parse_tokens(given or 0)
    if prefix >= context:
        raise BadValue(
            f"A shared prefix of {prefix:,} tokens leaves nothing of a context of {context:,}.",
            "Give a --context that counts the prefix and what follows it.",
        )
    return prefix


def _bandwidth(given: int | str) -> int:
    rate = parse_bandwidth(given)
    if rate < 1:
        raise BadValue("--bandwidth 0 reads nothing.", "Give a rate such as 2000GB/s.")
    return rate


def device_named(gpu: str | None, gpu_memory: int | str | None) -> tuple[Device, tuple[str, ...]]:
    """The device of a name with its memory, and what the name was taken to mean.

    Raises:
        BadQuestion: no such device, or one whose memory is neither known nor given.
    """
    if gpu is None and gpu_memory is None:
        raise BadValue(
            "No card is named.", "Pass --gpu NAME (see kvplan gpus), or --gpu-memory 80GiB."
        )
    device, said = (Device(name="given", title="given"), ()) if gpu is None else find_device(gpu)
    if gpu_memory is not None:
        memory = parse_bytes(gpu_memory)
        if memory < 1:
            raise BadValue("--gpu-memory 0 is no card.", "Give its memory, as in 80GiB.")
        return _with_memory(device, memory), said
    if device.memory_bytes is not None:
        return device, said
    if device.unified_memory:
        raise unified.unknown_memory(device)
    raise BadValue(
        f"What memory {device.title} reports is not known.",
        "Pass it with --gpu-memory, as its driver prints it.",
    )


def _with_memory(device: Device, memory: int) -> Device:
    """The device with another memory than its own: what torch was seen to see of it goes too."""
    if memory == device.memory_bytes:
        return device
    return replace(device, memory_bytes=memory, framework_memory_bytes=None)


def _pool_warning(kv_pool: int | str | None, memory: int) -> list[str]:
    pool = 0 if kv_pool is None else parse_bytes(kv_pool)
    if pool <= memory:
        return []
    said = f"--kv-pool {format_bytes(pool)} is more than the card's {format_bytes(memory)}"
    return [f"{said}: no such card holds it, and what fits is counted as if one did."]


def _stored_warning(model: Model, engine: Engine, flags: Mapping[str, Any]) -> list[str]:
    said = said_of_word(model, engine.name, str(flags.get("--quantization") or ""))
    return [] if said is None else [said]


def _free(free: int, memory: int) -> int:
    if free > memory:
        raise BadValue(
            f"--free-memory {format_bytes(free)} is more than the card's {format_bytes(memory)}."
        )
    return free


def _shares(device: Device, free: int | None) -> bool:
    """Whether something else may hold a part of the memory, and nobody said how much."""
    return device.unified_memory and free is None


def _host_link(device: Device, given: int | str | None) -> HostLink | None:
    if given is not None:
        return HostLink(parse_bandwidth(given), "--host-bandwidth")
    return host_link(device)


def _usual_context(model: Model, bound: int | None) -> int:
    """32k, the model's maximum, or what the engine is started for: the least."""
    most = min(USUAL_CONTEXT, model.max_context_tokens or USUAL_CONTEXT)
    return most if bound is None else min(most, bound)


def _vendor_warning(engine: Engine, device: Device) -> list[str]:
    if device.vendor in engine.not_on:
        return [f"{engine.name} has no kernels for {device.title}: planned as if it had."]
    said = too_old(engine.name, device)
    return [] if said is None else [f"{said}: planned as if it ran."]


def _host_warning(device: Device, cards: int) -> list[str]:
    said = beyond_a_host(device, cards)
    return [] if said is None else [said]


def _context_warning(model: Model, tokens: int) -> list[str]:
    longest = model.max_context_tokens
    if longest is None or tokens <= longest:
        return []
    return [f"{tokens:,} tokens are more than the {longest:,} that {model.name} declares."]


def _memory_unit_warning(given: int | str | None) -> list[str]:
    if not isinstance(given, str) or not re.search(r"[0-9.\s]GB\s*$", given, re.I):
        return []
    size = parse_bytes(given)
    said = (
        f"{given} is {size / GIB:.2f} GiB. Drivers print MiB, and a card rarely has a round number "
        f"of GB: an 80 GB H100 reports 81,559 MiB = {format_bytes(81559 << 20)}."
    )
    return [said]


def _origin(flag: object, value: object, default: str) -> tuple[object, str]:
    """A value and where it is from: the flag if one was given, else the default."""
    return value, "flag" if flag is not None else default
