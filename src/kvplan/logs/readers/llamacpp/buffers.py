"""The lines of devices: buffers, what is free, and the table at the end of a run.

    load_tensors:        CUDA0 model buffer size = 17931.70 MiB
    llama_context:   CUDA_Host  output buffer size =     0.58 MiB
    using device CUDA0 (NVIDIA GeForce RTX 4060 Ti) (0000:01:00.0) - 15221 MiB free
    |   - CUDA0 (RTX 3090)   | 24117 = 23773 + (20903 = 12096 +  7504 +  1302) + 17592186023856 |

The table's columns are unsigned: 17592186023856 is -20560 (common/memory, b11434).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kvplan.core.units import MIB
from kvplan.logs import numbers
from kvplan.logs.facts import Value

_BUFFER = re.compile(
    r"(\w{0,60}):? {1,20}(\S{1,80}) {1,9}(KV|RS|model|compute|output|input)? ?buffer size {0,9}="
    r" {0,12}(-?[\d.,]{1,24}) MiB"
)
_USING = re.compile(
    r"using device (\S{1,40}) \((.{1,80}?)\)(?: \(.{1,60}\))? - (\d{1,12}) MiB free"
)
_LISTED = re.compile(r" - (\w{1,40}) {0,9}: (.{1,80}) \((\d{1,12}) MiB, (\d{1,12}) MiB free\)")
_CUDA = re.compile(r"Device (\d{1,3}): (.{1,80}), compute capability [\d.]{1,8}")
_COLUMN = r" {0,20}(\d{1,20})"
_NAMED = r"\| {1,9}- (\S{1,40})(?: \(.{1,80}\))? {0,60}\|"
_OF_DEVICE = re.compile(
    rf"{_NAMED}{_COLUMN} ={_COLUMN} \+ \({_COLUMN} ={_COLUMN} \+{_COLUMN} \+{_COLUMN}\)"
    rf"(?: \+{_COLUMN})?"
)
_OF_HOST = re.compile(rf"{_NAMED} {{0,30}}(\d{{1,20}}) ={_COLUMN} \+{_COLUMN} \+{_COLUMN}(?: |\|)")
_WRAPPED: Final = 1 << 44  # MiB of 2^64 bytes
HOST_COLUMNS: Final = ("self_bytes", "model_bytes", "context_bytes", "compute_bytes")
DEVICE_COLUMNS: Final = (
    "total_gpu_bytes", "left_free_bytes", *HOST_COLUMNS, "unaccounted_bytes",
)  # fmt: skip
NAMES: Final = {
    "KV": "kv", "RS": "recurrent", "compute": "compute", "output": "output", "input": "input",
}  # fmt: skip


class OfDevice(NamedTuple):
    """What a line says of a device."""

    device: str
    figures: dict[str, Value]


def buffer(text: str) -> OfDevice | None:
    """A buffer, ``model`` where the line names no kind: builds to 2024 print weights so."""
    found = _BUFFER.search(text)
    if not found:
        return None
    name = f"{NAMES.get(found[3], 'model')}_buffer_bytes"
    return OfDevice(found[2], {name: numbers.size(f"{found[4]} MiB") or 0})


def device(text: str) -> OfDevice | None:
    """What a device is and has free."""
    if found := _USING.search(text):
        free = int(found[3]) * MIB
        return OfDevice(found[1], {"gpu": found[2], "free_gpu_bytes": free})
    if found := _LISTED.search(text):
        kind = "host" if found[1].startswith("CPU") else "gpu"
        total, free = int(found[3]) * MIB, int(found[4]) * MIB
        sizes = {f"total_{kind}_bytes": total, f"free_{kind}_bytes": free}
        return OfDevice(found[1], {kind: found[2], **sizes})
    if found := _CUDA.search(text):
        return OfDevice(f"CUDA{found[1]}", {"gpu": found[2]})
    return None


def breakdown(text: str) -> OfDevice | None:
    """A row of the memory table."""
    for pattern, names in ((_OF_DEVICE, DEVICE_COLUMNS), (_OF_HOST, HOST_COLUMNS)):
        if found := pattern.search(text):
            return OfDevice(found[1], dict(_columns(names, found.groups()[1:])))
    return None


def _columns(names: tuple[str, ...], values: tuple[str | None, ...]) -> Iterator[tuple[str, Value]]:
    for name, text in zip(names, values, strict=True):
        if text is not None:
            mib = int(text)
            yield name, (mib - _WRAPPED if mib >= _WRAPPED // 2 else mib) * MIB
