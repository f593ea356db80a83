"""MIG slices: a part of a card that its driver lists as a device of its own.

    h100-mig-3g-40gb        NVIDIA H100 80GB HBM3 MIG 3g.40gb
    3 of 7 compute slices, 4 of 8 memory slices: half of the memory and of its bandwidth

A memory slice comes with its memory controllers, so bandwidth is shared as memory is; compute by
the multiprocessors that ``nvidia-smi mig -lgip`` prints
(docs.nvidia.com/datacenter/tesla/mig-user-guide, concepts and supported profiles).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from kvplan.core.device import Device
from kvplan.core.errors import BadValue
from kvplan.core.units import GIB

_NAME = re.compile(r"(.{1,80}?)[\s_-]+mig[\s_-]+(\d)g[.\s_-](\d{1,3})gb", re.IGNORECASE)
ALONE = (
    "{} is a MIG slice: slices cannot exchange data card to card, so a model is not split over "
    "several of them."
)
SHARE = (
    "What the driver prints for {} is not known; taken as {} of {} memory slices, which is more "
    "than it gives."
)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    text = files("kvplan").joinpath("data/mig.json").read_text(encoding="utf-8")
    return {card: table for table in json.loads(text) for card in table["cards"]}


def split_name(name: str) -> tuple[str, str] | None:
    """The card and the profile that a slice's name has; None where it names no slice."""
    match = _NAME.fullmatch(name.strip())
    return None if match is None else (match[1], f"{match[2]}g.{match[3]}gb")


def slice_of(card: Device, profile: str) -> tuple[Device, tuple[str, ...]]:
    """The slice of a card as a device, and what was assumed of it.

    Raises:
        BadValue: a card that cannot be sliced, or not so.
    """
    table = _tables().get(card.kind)
    if table is None:
        raise BadValue(
            f"{card.title} has no MIG slices that are known.",
            f"These cards have: {', '.join(sorted(_tables()))}; or pass --gpu-memory.",
        )
    found = table["profiles"].get(profile)
    if found is None:
        raise BadValue(
            f"{card.title} has no MIG profile {profile}.",
            f"It has {', '.join(table['profiles'])}.",
        )
    return _device(card, profile, table, found), _said(card, profile, table, found)


def _device(card: Device, profile: str, table: dict[str, Any], found: dict[str, Any]) -> Device:
    share = found["slices"] / table["slices"]
    compute = found["multiprocessors"] / table["multiprocessors"]
    observed = found.get("memory_gib")
    memory = int((card.memory_bytes or 0) * share) if observed is None else round(observed * GIB)
    bandwidth = card.bandwidth_bytes_per_s
    return replace(
        card,
        name=f"{card.name}-mig-{profile.replace('.', '-')}",
        title=f"{card.title} MIG {profile}",
        aliases=(),
        usual_for=(),
        memory_bytes=memory,
        framework_memory_bytes=memory,  # torch prints what the driver lists for a slice
        bandwidth_bytes_per_s=None if bandwidth is None else int(bandwidth * share),
        dense_flops={kind: int(peak * compute) for kind, peak in card.dense_flops.items()},
        link_bytes_per_s=None,
        link="",
        memory_note=f"MIG {profile}: {table['source']}",
        sliced=True,
        price=None,  # that of the whole card
    )


def _said(
    card: Device, profile: str, table: dict[str, Any], found: dict[str, Any]
) -> tuple[str, ...]:
    if "memory_gib" in found:
        return ()
    return (SHARE.format(f"{card.title} MIG {profile}", found["slices"], table["slices"]),)
