"""Tokens of a block: what the attention's kernel takes, and what holds a state in hybrids.

vLLM 0.32.0, platforms/interface.py (update_block_size_for_backend, _align_hybrid_block_size) and
platforms/cuda.py; each backend's get_supported_kernel_block_sizes.
"""

from __future__ import annotations

from math import lcm
from typing import NamedTuple

from kvplan.core.compressed import CompressedAttention
from kvplan.core.latent import LatentAttention
from kvplan.core.model import Model
from kvplan.core.units import ceil_div
from kvplan.core.version import ByVersion
from kvplan.engines.vllm.devices import DeviceTraits
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.settings import Settings

USUAL = 16
COMPRESSED = 256  # DEEPSEEK_V4_INDEXER
SPARSE_LATENT = 64  # FLASHMLA_SPARSE and DEEPSEEK_V32_INDEXER
# Sparse attention with heads whose page is a block that it picks (models/minimax_m3/common).
SPARSE_HEADS = {"minimax_m3": 128, "minimax_m3_vl": 128}
USUAL_CHUNK = 256  # tokens that a state space processes at once

# The least block of a backend that does not take 16.
BACKENDS = {
    "FLASHMLA": 64, "CUTLASS_MLA": 128, "FLASHINFER_MLA": 32, "TOKENSPEED_MLA": 32,
    "FLASHMLA_SPARSE": 64, "FLASH_ATTN_MLA_SPARSE": 64, "FLASHINFER_MLA_SPARSE": 64, "HPC_ATTN": 64,
}  # fmt: skip
# Dense latent attention by generation: the first backend of the priorities that runs there.
LATENT_BY_GENERATION = {
    9: ByVersion((("0.6", 64), ("0.11", 16))),  # FLASHMLA, then FLASH_ATTN_MLA
    10: ByVersion((("0.6", 128), ("0.12", 64), ("0.20.0", 32))),  # CUTLASS_MLA, FLASHINFER_MLA
}
CPU_BLOCK = 128  # CPU_ATTN prefers it and takes multiples of 32; CPU_MLA takes 16 alone


class Kernel(NamedTuple):
    """``block`` is what is taken without a state, ``least`` the smallest that the kernel runs."""

    block: int
    least: int


def kernel_of(model: Model, settings: Settings, rules: Rules) -> Kernel:
    """The block of the model's attention on this device, unless one is given."""
    least = _least(model, settings, rules)
    if settings.block_size is not None:
        return Kernel(settings.block_size, least)
    return Kernel(least, least)


def _least(model: Model, settings: Settings, rules: Rules) -> int:
    kinds = [layer for block in model.blocks.kinds for layer in block]
    device = settings.device
    if any(isinstance(layer, CompressedAttention) for layer in kinds):
        return COMPRESSED
    if settings.backend in BACKENDS:
        return BACKENDS[settings.backend]
    latent = any(isinstance(layer, LatentAttention) for layer in kinds)
    if device.platform == "cpu":
        return USUAL if latent else CPU_BLOCK
    if any(getattr(layer, "index_dim", 0) for layer in kinds):
        return SPARSE_LATENT if latent else SPARSE_HEADS.get(model.model_type, SPARSE_LATENT)
    if latent:
        return _latent(device, rules)
    return USUAL


def _latent(device: DeviceTraits, rules: Rules) -> int:
    known = LATENT_BY_GENERATION.get(device.major) if device.platform == "cuda" else None
    return known.at(rules.version) if known else USUAL


def hybrid_block(
    kernel: Kernel, token_bytes: int, state: int, settings: Settings, rules: Rules, chunk: int
) -> int:
    """The least block whose page holds a state, in whole kernel blocks.

    Args:
        kernel: of the model's attention.
        token_bytes: of one token in one layer of attention.
        state: bytes of the largest state.
        settings: for the mode in which states are kept.
        rules: the version's.
        chunk: tokens that the state processes at once; 0 is the usual.
    """
    step = max(kernel.least, kernel.block)
    if settings.mamba_mode == "all":
        step = lcm(chunk or USUAL_CHUNK, step)
        found = step * ceil_div(ceil_div(state, token_bytes), step)
    else:
        found = step * ceil_div(state, step * token_bytes)
    return max(kernel.block, found)


def latent_hybrid(kernel: Kernel, rules: Rules) -> Kernel:
    """A hybrid of latent attention: whole numbers of the blocks that its decode kernels split."""
    return Kernel(kernel.block, max(kernel.least, rules.latent_hybrid_block))
