"""The card as vLLM meets it: what torch sees of it, what the fraction asks for, what is gone.

total × fraction = requested           the budget, of the total and not of what is free
total − context − requested            left for graphs, spikes and other processes
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from kvplan.core.device import Device
from kvplan.core.units import GIB, MIB
from kvplan.engines.base import Node
from kvplan.engines.vllm.devices import device_traits

# Torch's total is below the driver's by what the driver keeps: 469 to 638 MiB on twelve kinds of
# card with ECC or without, 768 on an A100; the median stands for a card that was not observed.
RESERVE: Final = 494 * MIB
RESERVE_ERROR: Final = 140 * MIB
SMALL_RESERVE: Final = 256 * MIB  # cards below 20 GiB: RTX 5080, 2080 Ti
LARGE_RESERVE: Final = 640 * MIB  # cards of 80 GiB and more without an observation
# A context of CUDA, its kernels and the communicators made before the first measurement: an H100
# has 78.68 of 79.19 GiB free then, 77.12 as one of four.
CONTEXT: Final = 522 * MIB
CONTEXT_OF_GROUP: Final = 2120 * MIB

HOPPER: Final = 9  # compute capabilities, major
BLACKWELL: Final = 10
WITHOUT_PEERS = ("rtx", "l4", "l40", "t4", "a10", "a40", "v100-pcie", "gb10", "p40")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One device: torch's total and its error, and what it is."""

    total: int
    total_error: int
    source: str
    vendor: str
    unified: bool
    hopper: bool
    blackwell: bool
    peers: bool

    @property
    def fuses_reductions(self) -> bool:
        """Whether all-reduce is fused with the norm after it where ranks are several."""
        return self.hopper or self.blackwell

    def requested(self, utilization: float) -> int:
        """The budget: vllm/v1/worker/utils.py, request_memory (0.32.0)."""
        return math.ceil(self.total * utilization)


def machine_of(node: Node) -> Machine:
    """The device of a node."""
    device = node.device
    total, error, source = _total(node)
    name = device.kind
    traits = device_traits(name, device.vendor)
    return Machine(
        total=total,
        total_error=error,
        source=source,
        vendor=device.vendor,
        unified=device.unified_memory,
        hopper=traits.major == HOPPER,
        blackwell=traits.major == BLACKWELL,
        peers=not name.startswith(WITHOUT_PEERS),
    )


def _total(node: Node) -> tuple[int, int, str]:
    """Torch's total: observed, or the driver's without what it keeps."""
    device, seen = node.device, node.framework_memory_bytes
    if device.framework_memory_bytes is not None and seen == device.framework_memory_bytes:
        return seen, 6 * MIB, "torch's total as observed"
    if device.memory_bytes is None or device.unified_memory or device.vendor in ("AMD", "given"):
        return node.memory_bytes, GIB // 100, "memory as given"
    if not _reported(device, node.memory_bytes):
        return node.memory_bytes, GIB // 4, "memory as given"
    reserve = _reserve(device, node.memory_bytes)
    said = f"the driver's total less about {reserve >> 20} MiB that it keeps"
    return node.memory_bytes - reserve, RESERVE_ERROR, said


def _reported(device: Device, memory: int) -> bool:
    """Whether the memory is what the device table says its driver reports."""
    return bool(device.vendor) and memory == device.memory_bytes


def _reserve(device: Device, memory: int) -> int:
    if device.vendor != "NVIDIA":
        return 0
    if memory < 20 * GIB:
        return SMALL_RESERVE
    return LARGE_RESERVE if memory > 90 * GIB else RESERVE
