"""Devices whose memory is the system's: how much of it the graphics part is given.

Apple's default limit is no fixed share of the RAM, so it is known for some sizes alone; what AMD's
driver gives follows from the firmware and a module parameter.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kvplan.core.device import Device
from kvplan.core.errors import BadValue
from kvplan.core.units import MIB, format_bytes

_RAM = re.compile(r"(.{1,60}?)[\s_-]+(\d{1,4})\s*gb", re.IGNORECASE)
SHARED = (
    "{} shares its memory with the system: what runs beside the engine is not free for it. Pass "
    "--free-memory with what is free when it starts."
)


def split_name(name: str) -> tuple[str, str] | None:
    """The device and the gigabytes of RAM that a name ends with; None where it has none."""
    match = _RAM.fullmatch(name.strip())
    return None if match is None else (match[1], match[2])


def with_ram(device: Device, ram: str) -> Device:
    """The device with the limit that its system sets by default for so much RAM.

    Raises:
        BadValue: an amount of RAM whose limit is not known.
    """
    limits = device.gpu_working_set_mib_by_ram_gb
    if ram not in limits:
        raise BadValue(
            f"What {device.title} gives its GPU of {ram} GB is not known.",
            f"Known: {', '.join(limits)} GB; or pass --gpu-memory.",
        )
    return replace(
        device,
        memory_bytes=limits[ram] * MIB,
        memory_note=f"macOS's default limit for the GPU of {ram} GB; iogpu.wired_limit_mb sets it",
    )


def unknown_memory(device: Device) -> BadValue:
    """The error for a device whose memory depends on what is installed, with what is known."""
    limits = device.gpu_working_set_mib_by_ram_gb
    if limits:
        shares = ", ".join(
            f"{ram} GB gives {format_bytes(limit * MIB)}" for ram, limit in limits.items()
        )
        return BadValue(
            f"What {device.title} gives its GPU depends on the RAM installed: {shares} (macOS's "
            "default).",
            f"Name it, as {device.name}-64gb, or pass --gpu-memory; sudo "
            "sysctl iogpu.wired_limit_mb raises the limit.",
        )
    if device.vendor == "AMD":
        return BadValue(
            f"What {device.title} gives its GPU depends on the firmware and the driver: half of "
            "the RAM by default (61.41 of 122.82 GiB were seen).",
            "Pass it with --gpu-memory; the kernel's amdgpu.gttsize raises it.",
        )
    return BadValue(
        f"What memory {device.title} reports is not known (it depends on what is installed).",
        "Pass it with --gpu-memory, as its driver prints it.",
    )
