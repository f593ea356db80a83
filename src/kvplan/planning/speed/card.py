"""What one card can do at most: bytes and operations a second, and the link to its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvplan.core.device import Device

SIXTEEN_BITS: Final = ("bf16", "fp16")
# Weights of a type that a card has no units for are widened to 16 bits in the kernel (vLLM's Marlin
# for fp8 on Ampere and fp4 on Hopper).
MULTIPLIED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "fp4": ("fp4", *SIXTEEN_BITS),
    "fp8": ("fp8", *SIXTEEN_BITS),
    "fp8 blocks": ("fp8", *SIXTEEN_BITS),
    "int8": ("int8", *SIXTEEN_BITS),
    "ggml": ("int8", *SIXTEEN_BITS),
    "ggml 16": SIXTEEN_BITS,
    "16": SIXTEEN_BITS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card's peaks; 0 where a peak is not known. ``name`` is that of the known card that it is
    like, whose rates hold for it.

    ``link_bytes_per_s`` is one way, of one card to its neighbours.
    """

    name: str
    vendor: str
    bytes_per_s: int
    flops: Mapping[str, int]
    link_bytes_per_s: int
    unified: bool = False

    def peak(self, kind: str) -> int:
        """Operations a second of weights stored so (``fp4``, ``mxfp4``, ``fp8``, ``fp8 blocks``,
        ``int8``, ``ggml``, ``ggml 16``, ``16``), dense; 0 where it is not known.
        """
        multiplied = self.multiplies(kind)
        found = next((x for name in MULTIPLIED_IN[multiplied] if (x := self.flops.get(name))), 0)
        # Sums in 16 bits are half as fast as integers of 8 bits also where the maker halves those
        # in 32 bits, which the table has (GeForce).
        return max(found, self.flops.get("int8", 0) // 2) if multiplied == "ggml 16" else found

    def multiplies(self, kind: str) -> str:
        """The type that a stored kind is multiplied in.

        MXFP4 weights meet activations of 8 bits where the card multiplies 4 (gpt-oss on Blackwell:
        MXFP8), of 16 elsewhere. FP8 with a scale a block is a type of its own: its products are
        scaled and added up outside the units (DeepGEMM), and its activations as they come. ggml
        multiplies its blocks of integers as such where there are units for it (ggml-cuda/mmq.cu,
        b11434), and matrices of 16 bits with sums of 16 (ggml-cuda.cu, CUBLAS_COMPUTE_16F).
        """
        if kind == "mxfp4":
            kind = "fp8" if self.flops.get("fp4") else "16"
        found = next((name for name in MULTIPLIED_IN[kind] if self.flops.get(name)), "16")
        if kind.startswith("ggml"):
            return "ggml" if found == "int8" else "ggml 16"
        if found in SIXTEEN_BITS:
            return "16"
        return kind if found == "fp8" else found


def card_of(device: Device, bandwidth: int | None = None) -> Card | None:
    """The card of a device; None where its bandwidth is neither known nor given."""
    rate = bandwidth or device.bandwidth_bytes_per_s
    if not rate:
        return None
    return Card(
        name=device.kind,
        vendor=device.vendor,
        bytes_per_s=rate,
        flops=device.dense_flops,
        link_bytes_per_s=device.link_bytes_per_s or 0,
        unified=device.unified_memory,
    )
