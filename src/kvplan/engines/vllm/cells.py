"""Bytes of one token in one layer, by the type that ``--kv-cache-dtype`` names.

The widths are those of vLLM's specs and of the backends that publish their own packing
(``customize_spec``, vLLM 0.32.0, v1/attention/backends/).
"""

from __future__ import annotations

from collections.abc import Callable

from kvplan.core.units import ceil_div

SCALE_BYTES = 4  # a float32 scale of a head's key, and one of its value

# TurboQuant's presets: bits of a key's and of a value's element; 8 is fp8 without a norm
# (model_executor/layers/quantization/turboquant/config.py, TQ_PRESETS).
TURBOQUANT = {
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}
# One opaque row a token: 512 latent elements in fp8, their 4 scales and 64 rotary ones in 16 bits;
# the 4-bit form (model_executor/layers/attention/mla_attention.py, get_kv_cache_spec).
LATENT_ROWS = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
INDEX_SCALE_EACH = 128  # elements of an indexer's key that share a scale (DeepseekV32Indexer)


def _scaled(key: int, value: int) -> int:
    return key + value + 2 * SCALE_BYTES


def _scaled_int4(key: int, value: int) -> int:
    return key // 2 + value // 2 + 2 * SCALE_BYTES


def _nvfp4(key: int, value: int) -> int:
    """Half a byte an element and a byte of scale each 16."""
    return key // 2 + key // 16 + value // 2 + value // 16


def turboquant(dtype: str, dim: int) -> int:
    """A key and a value of one head, rounded up to an even number of bytes.

    TurboQuantConfig.slot_size_aligned: packed elements, a 16-bit norm of a key that is not fp8, a
    16-bit scale and zero point of a value.
    """
    key_bits, value_bits = TURBOQUANT[dtype]
    key = dim if key_bits == 8 else ceil_div(dim * key_bits, 8) + 2
    slot = key + ceil_div(dim * value_bits, 8) + 4
    return slot + slot % 2


HEADS: dict[str, Callable[[int, int], int]] = {
    "fp8_per_token_head": _scaled,
    "int8_per_token_head": _scaled,
    "int4_per_token_head": _scaled_int4,
    "nvfp4": _nvfp4,
    "nvfp4_4over6": _nvfp4,
}


def head_bytes(dtype: str, key: int, value: int, model_bytes: int) -> int:
    """A key and a value of one head."""
    if dtype in TURBOQUANT:
        return turboquant(dtype, key)
    own = HEADS.get(dtype)
    if own is not None:
        return own(key, value)
    return (key + value) * element_bytes(dtype, model_bytes)


def element_bytes(dtype: str, model_bytes: int) -> int:
    """An element that is stored by itself; ``auto`` is the model's type."""
    if dtype == "auto":
        return model_bytes
    return 1 if dtype.startswith("fp8") else 2


def latent_bytes(dtype: str, width: int, model_bytes: int) -> int:
    """A latent row with its rotary key."""
    return LATENT_ROWS.get(dtype) or width * element_bytes(dtype, model_bytes)


def index_bytes(dim: int) -> int:
    """An indexer's key in fp8 with its scales."""
    return dim + dim // INDEX_SCALE_EACH * SCALE_BYTES
