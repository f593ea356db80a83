"""Sequences and tokens of a step by device and version (EngineArgs.get_batch_defaults)."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core.units import GIB
from kvplan.engines.vllm.devices import DeviceTraits
from kvplan.engines.vllm.rules import Rules


class BatchDefaults(NamedTuple):
    """Tokens of a step for the LLM class and for the server, and sequences for each."""

    offline_tokens: int
    server_tokens: int
    offline_sequences: int
    server_sequences: int

    def of(self, usage: str) -> tuple[int, int]:
        """Tokens and sequences of ``server`` or ``offline``."""
        if usage == "offline":
            return self.offline_tokens, self.offline_sequences
        return self.server_tokens, self.server_sequences


LARGEST = BatchDefaults(16384, 16384, 1024, 1024)
LARGE = BatchDefaults(16384, 8192, 1024, 1024)
USUAL = BatchDefaults(8192, 2048, 256, 256)
V0 = BatchDefaults(2048, 2048, 256, 256)


def batch_defaults(
    device: DeviceTraits, memory_bytes: int, ranks: int, rules: Rules
) -> BatchDefaults:
    """By memory; an A100 counts as a smaller card, and so does one whose driver does not answer."""
    if device.platform == "cpu":
        return BatchDefaults(4096 * ranks, 2048 * ranks, 256 * ranks, 128 * ranks)
    if not rules.paged_by_kind:
        return V0
    memory = memory_bytes if device.answers else 0
    if memory >= 160 * GIB and rules.large_gpu_batch:
        return LARGEST
    return LARGE if memory >= 70 * GIB and not device.is_a100 else USUAL
