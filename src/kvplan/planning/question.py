"""A capacity question: a model on a node under some flags, every value read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvplan.core.device import Device
from kvplan.core.errors import BadValue
from kvplan.core.formats import Format, parse_format
from kvplan.core.model import Model
from kvplan.core.sharding import divides, nearest_sizes, query_heads
from kvplan.core.units import GIB, format_bytes, parse_bandwidth, parse_bytes, parse_tokens
from kvplan.readers.devices import find_device
from kvplan.readers.families.base import Options
from kvplan.readers.open_model import ModelSource, open_model

USUAL_CONTEXT = 32768
MAX_GPUS = 4096
MAX_CONCURRENCY = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What ``fit`` answers, in bytes, tokens and bytes a second.

    ``memory_bytes`` and ``bandwidth_bytes_per_s`` are one card's; ``weights_bytes`` the whole
    model's. ``given`` has every flag's value and where it is from.
    """

    model: Model
    device: Device
    gpus: int
    memory_bytes: int
    bandwidth_bytes_per_s: int | None
    weights_bytes: int
    weights_source: str
    allowance_bytes: int
    fmt: Format
    context: int
    concurrency: int | None
    shared_prefix: int
    price: float | None
    currency: str
    given: Mapping[str, tuple[object, str]]
    warnings: tuple[str, ...]


def ask(
    model: ModelSource,
    *,
    gpu: str | None,
    gpus: int,
    context: int | str | None,
    concurrency: int | None,
    kv_dtype: str,
    weights_bytes: int | str | None,
    gpu_memory: int | str | None,
    bandwidth: int | str | None,
    allowance: int | str | None,
    shared_prefix: int | str | None,
    price: float | None,
    currency: str,
    set: Mapping[str, Any] | None,
    encoder_tokens: int | str | None,
    assume: str,
    offline: bool,
) -> Question:
    """The question with every value read.

    Raises:
        BadQuestion: a value that cannot be read, a card whose memory is not known, weights that
            cannot be told, heads that do not divide over the cards.
    """
    length = None if encoder_tokens is None else parse_tokens(encoder_tokens)
    found = open_model(
        model, overrides=set, options=Options(encoder_tokens=length), assume=assume, offline=offline
    )
    _check_counts(gpus, concurrency, price)
    _check_layout(found, gpus)
    device, said = _device(gpu, gpu_memory)
    weights, weights_source = _weights(found, weights_bytes)
    tokens = parse_tokens(context) if context is not None else _usual_context(found)
    if tokens < 1:
        raise BadValue("--context 0 holds no conversation.", "Give a length such as 32k.")
    warnings = [*found.warnings, *said, *_context_warning(found, tokens)]
    if gpu_memory is not None:
        warnings += _memory_unit_warning(gpu_memory)
    if allowance is None:
        warnings.append(
            "No --allowance: nothing is set aside for activations, the CUDA context and graphs, "
            "which take several GiB in practice."
        )
    rate = device.bandwidth_bytes_per_s if bandwidth is None else parse_bandwidth(bandwidth)
    return Question(
        model=found,
        device=device,
        gpus=gpus,
        memory_bytes=device.memory_bytes or 0,
        bandwidth_bytes_per_s=rate or None,
        weights_bytes=weights,
        weights_source=weights_source,
        allowance_bytes=parse_bytes(allowance or 0),
        fmt=parse_format(kv_dtype),
        context=tokens,
        concurrency=concurrency,
        shared_prefix=parse_tokens(shared_prefix or 0),
        price=price,
        currency=currency[:8].upper(),
        given={
            "--gpu-memory": _origin(gpu_memory, device.memory_bytes, device.memory_note or "table"),
            "--bandwidth": _origin(bandwidth, rate, "device table"),
            "--allowance": _origin(allowance, parse_bytes(allowance or 0), "default: nothing"),
            "--context": _origin(context, tokens, "default: 32k, or the model's maximum if less"),
            "--kv-dtype": _origin(kv_dtype if kv_dtype != "bf16" else None, kv_dtype, "default"),
            "--gpus": _origin(gpus if gpus > 1 else None, gpus, "default"),
        },
        warnings=tuple(warnings),
    )


def _check_counts(gpus: int, concurrency: int | None, price: float | None) -> None:
    if not 1 <= gpus <= MAX_GPUS:
        raise BadValue(f"--gpus {gpus:,} is not a number of cards from 1 to {MAX_GPUS:,}.")
    if concurrency is not None and not 1 <= concurrency <= MAX_CONCURRENCY:
        raise BadValue(f"--concurrency {concurrency:,} is not from 1 to {MAX_CONCURRENCY:,}.")
    if price is not None and not 0 <= price < 1e9:
        raise BadValue(f"--price {price} is not a price of one card for one hour.")


def _check_layout(model: Model, gpus: int) -> None:
    if divides(model, gpus):
        return
    heads = ", ".join(map(str, query_heads(model)))
    sizes = " or ".join(map(str, nearest_sizes(model, gpus)))
    raise BadValue(
        f"{model.name} has {heads} query heads, which {gpus} cards of tensor parallelism do not "
        "divide.",
        f"The nearest that do: --gpus {sizes}.",
    )


def _device(gpu: str | None, gpu_memory: int | str | None) -> tuple[Device, tuple[str, ...]]:
    if gpu is None and gpu_memory is None:
        raise BadValue(
            "No card is named.", "Pass --gpu NAME (see kvplan gpus), or --gpu-memory 80GiB."
        )
    device, said = (Device(name="given", title="given"), ()) if gpu is None else find_device(gpu)
    if gpu_memory is not None:
        memory = parse_bytes(gpu_memory)
        return _with_memory(device, memory), said
    if device.memory_bytes is None:
        raise BadValue(
            f"What memory {device.title} reports is not known"
            + (" (it depends on what is installed)." if device.unified_memory else "."),
            "Pass it with --gpu-memory, as its driver prints it.",
        )
    return device, said


def _with_memory(device: Device, memory: int) -> Device:
    if memory < 1:
        raise BadValue("--gpu-memory 0 is no card.", "Give its memory, as in 80GiB.")
    return replace(device, memory_bytes=memory)


def _weights(model: Model, given: int | str | None) -> tuple[int, str]:
    if given is not None:
        return parse_bytes(given), "--weights-bytes"
    if model.weights is None:
        raise BadValue(
            f"What the weights of {model.name} weigh cannot be told from its config.",
            "Pass it with --weights-bytes, as in --weights-bytes 14.9GiB.",
        )
    return model.weights.num_bytes, model.weights.source


def _usual_context(model: Model) -> int:
    return min(USUAL_CONTEXT, model.max_context_tokens or USUAL_CONTEXT)


def _context_warning(model: Model, tokens: int) -> list[str]:
    longest = model.max_context_tokens
    if longest is None or tokens <= longest:
        return []
    return [f"{tokens:,} tokens are more than the {longest:,} that {model.name} declares."]


def _memory_unit_warning(given: int | str) -> list[str]:
    if isinstance(given, int) or not re.search(r"[0-9.\s]GB\s*$", given, re.I):
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
