"""What vLLM asks of a device beside its memory: its platform, its generation, its driver."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

# CUDA compute capability (major) by a device's name, the first that matches; NVIDIA's list of
# CUDA GPUs. What matters here is whether it is 9, 10 or another.
GENERATIONS = (
    (re.compile(r"gb10\b|rtx-pro|rtx-50[5-9]0"), 12),
    (re.compile(r"b[123]00"), 10),
    (re.compile(r"gh200|h[128]00|h20\b"), 9),
    (re.compile(r"v100|\bt4\b"), 7),
)
UNANSWERED = re.compile(r"gb10\b")
PLATFORMS = {"AMD": "rocm", "Intel": "xpu", "CPU": "cpu"}


class DeviceTraits(NamedTuple):
    """``major`` is the compute capability, 8 where the name says nothing; ``answers`` is off where
    the driver does not tell the memory, so that vLLM takes it for none.
    """

    platform: str
    major: int
    is_a100: bool
    answers: bool


@lru_cache(maxsize=256)
def device_traits(name: str, vendor: str) -> DeviceTraits:
    """The traits of a device by its name in the table."""
    platform = PLATFORMS.get(vendor, "cuda")
    found = name.lower()
    major = next((major for pattern, major in GENERATIONS if pattern.search(found)), 8)
    return DeviceTraits(platform, major, "a100" in found, not UNANSWERED.search(found))
