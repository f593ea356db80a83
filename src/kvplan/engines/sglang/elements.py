"""The formats that SGLang keeps a cache in: what its budget counts and what its log prints.

SGLang 0.5.6 to 0.5.23, model_executor/pool_configurator.py (before: model_runner.py).
"""

from __future__ import annotations

from typing import NamedTuple


class Elements(NamedTuple):
    """``bits`` an element, and a scale byte for each ``scale_block`` elements (0: none)."""

    name: str
    torch_name: str
    bits: int
    scale_block: int = 0

    def num_bytes(self, count: int) -> int:
        """Bytes of so many elements without their scales."""
        return count * self.bits // 8

    def scale_bytes(self, count: int) -> int:
        """Bytes of their scales."""
        return count // self.scale_block if self.scale_block else 0


BF16 = Elements("bfloat16", "torch.bfloat16", 16)
FP8 = Elements("fp8_e4m3", "torch.float8_e4m3fn", 8)
FP4 = Elements("fp4_e2m1", "torch.float4_e2m1fn_x2", 4, 16)

# "auto" is decided in settings.py.
CACHE_TYPES: dict[str, Elements] = {
    "auto": BF16,
    "bf16": BF16,
    "bfloat16": BF16,
    "float16": Elements("float16", "torch.float16", 16),
    "fp8": FP8,
    "fp8_e4m3": FP8,
    "fp8_e5m2": Elements("fp8_e5m2", "torch.float8_e5m2", 8),
    "mxfp8": Elements("mxfp8", "torch.float8_e4m3fn", 8, 32),
    "fp4_e2m1": FP4,
    "fp4_mx_block16": FP4,
    "nvfp4": FP4,
}
