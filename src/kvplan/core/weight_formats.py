"""Weight formats by the words that people use: ``--quantization fp8``, ``…-AWQ``.

A word names a scheme for the linear layers; embeddings, heads, routers, norms and towers stay in
16 bits. Which layers a recipe left out is not known from a word, hence a wider error.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from kvplan.core import weights as w
from kvplan.core.quantisation import LINEAR_ROLES, WHOLE, Quantised, Scheme

NETWORKS = frozenset({w.MLP_IN, w.MLP_OUT, w.EXPERT_IN, w.EXPERT_OUT})
KEPT = frozenset({w.HEAD, w.ROUTER, w.TOWER, w.PROJECTOR, w.ENCODER})
EXPERTS = frozenset({w.EXPERT_IN, w.EXPERT_OUT})

FP8 = Scheme(name="fp8 per tensor", bits=8, block_rows=WHOLE, per_tensor_bytes=8)
FP8_CHANNEL = Scheme(name="fp8 per channel", bits=8, scale_bytes=4)
FP8_BLOCKS = Scheme(name="fp8 blocks", bits=8, block_rows=128, block_cols=128, scale_bytes=4)
MXFP8 = Scheme(name="mxfp8", bits=8, block_cols=32, scale_bytes=1)
INT8 = Scheme(name="int8 per channel", bits=8, scale_bytes=4)
# AutoAWQ and GPTQ: groups of 128 with a 16-bit scale and a packed zero point; compressed-tensors'
# pack-quantized recipes are symmetric, in groups of 128 as well.
GROUPS = Scheme(name="int4 in groups of 128", bits=4, block_cols=128, scale_bytes=2, zero_bits=4)
SYMMETRIC = Scheme(name="int4 in groups of 128", bits=4, block_cols=128, scale_bytes=2)
NVFP4 = Scheme(name="nvfp4", bits=4, block_cols=16, scale_bytes=1, per_tensor_bytes=8)
MXFP4 = Scheme(name="mxfp4", bits=4, block_cols=32, scale_bytes=1)
NF4 = Scheme(name="nf4 double", bits=4, block_cols=64, scale_bytes=1)
# llama.cpp's K-quants keep 4.5 bits an element in Q4_K blocks; the usual mixes come to 4.85.
Q4_K_M = Scheme(name="q4_k_m", bits=4, block_cols=256, scale_bytes=27)
Q8_0 = Scheme(name="q8_0", bits=8, block_cols=32, scale_bytes=2)

FORMATS: dict[str, Scheme] = {
    "fp8": FP8, "fbgemm_fp8": FP8_CHANNEL, "ptpc_fp8": FP8_CHANNEL, "fp8_dynamic": FP8_CHANNEL,
    "w8a8": INT8, "int8": INT8, "w8a8int8": INT8, "w8a16": INT8, "experts_int8": INT8,
    "awq": GROUPS, "awq_marlin": GROUPS, "gptq": GROUPS, "gptq_marlin": GROUPS,
    "auto_round": GROUPS, "inc": GROUPS, "int4": SYMMETRIC, "w4a16": SYMMETRIC,
    "bitsandbytes": NF4, "nf4": NF4, "modelopt": FP8, "modelopt_fp8": FP8,
    "modelopt_fp4": NVFP4, "modelopt_nvfp4": NVFP4, "nvfp4": NVFP4, "fp4": NVFP4,
    "fp8_per_tensor": FP8, "fp8_per_channel": FP8_CHANNEL, "fp8_per_block": FP8_BLOCKS,
    "fp8_block_scales": FP8_BLOCKS, "w8a8_fp8": FP8_CHANNEL, "mxfp8": MXFP8,
    "w8a8_int8": INT8, "int8_per_channel_weight_only": INT8,
    "w4a16_awq": GROUPS, "w4a8_awq": GROUPS, "w4a16_gptq": GROUPS, "auto_awq": GROUPS,
    "auto_gptq": GROUPS, "nvfp4_online": NVFP4, "nvfp4_per_token": NVFP4,
    "mxfp4": MXFP4, "gpt_oss_mxfp4": MXFP4, "gguf": Q4_K_M, "q4_k_m": Q4_K_M, "q8_0": Q8_0,
}  # fmt: skip


# Words of a checkpoint's name, the telling ones first: an NVFP4 recipe may well mention FP8.
NAMED = tuple(
    (re.compile(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])"), word)
    for pattern, word in (
        ("nvfp4|fp4", "nvfp4"),
        ("mxfp4", "mxfp4"),
        ("w4a16|int4|4[-_]?bits?|awq|gptq", "w4a16"),
        ("w8a8|int8|w8a16|8[-_]?bits?", "w8a8"),
        ("fp8", "fp8_dynamic"),
    )
)


def format_of_name(name: str, mixture: bool) -> Quantised | None:
    """The storage that a checkpoint's name tells, as ``Qwen2.5-7B-Instruct-AWQ``.

    Four-bit copies of mixtures keep attention in 16 bits as a rule (nine published ones are within
    11% so, and 19% too small otherwise).
    """
    lowered = name[:200].lower()
    word = next((word for pattern, word in NAMED if pattern.search(lowered)), "")
    found = format_of_word(word)
    if found is None:
        return None
    shares = found.shares
    if mixture and word in ("nvfp4", "w4a16"):
        shares = {role: parts for role, parts in shares.items() if role in NETWORKS}
    return replace(found, shares=shares, told_by="its name")


def key_of(word: str) -> str:
    """A word as ``FORMATS`` spells it."""
    return word.lower().replace("-", "_")


@lru_cache(maxsize=64)
def format_of_word(word: str) -> Quantised | None:
    """The storage that a word names; None for a word that leaves it to the checkpoint."""
    key = key_of(word)
    scheme = FORMATS.get(key)
    if scheme is None:
        return None
    only_experts = scheme is MXFP4 or key == "experts_int8"
    roles = EXPERTS if only_experts else LINEAR_ROLES - KEPT
    return Quantised(
        method=scheme.name, shares=dict.fromkeys(roles, ((scheme, 1.0),)), told_by="--quantization"
    )
