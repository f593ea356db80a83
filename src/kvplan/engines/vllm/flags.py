"""vLLM's own flags in its own spelling, and how it reads their values.

vLLM 0.32.0, engine/arg_utils.py and utils/argparse_utils.py: ``1k`` is 1,000 and ``1K`` 1,024.
The ``--draft-`` flags are kvplan's: they say what vLLM would read in the draft model's folder. So
is ``--cpu-kvcache-space``, which is a variable of the environment.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.units import MAX_BYTES, parse_bytes
from kvplan.engines.experts import EPLB
from kvplan.engines.flags import Flag, FlagTable, fraction, whole, word

AUTO_LENGTH = -1
MAX_RANKS = 4096
LONGEST_JSON = 20_000

KV_DTYPES = (
    "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla",
    "nvfp4_ds_mla", "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc",
    "turboquant_3bit_nc", "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head",
    "nvfp4", "nvfp4_4over6",
)  # fmt: skip
DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
STATE_DTYPES = ("auto", "float32", "float16", "bfloat16")
MULTIPLIERS = {
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30,
    "T": 1 << 40,
}  # fmt: skip
_HUMAN = re.compile(r"(\d{1,15})(\.\d{1,9})?([kmgtKMGT]?)")


def human(text: str) -> int:
    """``8192``, ``8k`` (8,000), ``8K`` (8,192), ``25.6k`` (25,600).

    Raises:
        BadValue: not such a number, or a part of a binary unit.
    """
    match = _HUMAN.fullmatch(text.strip())
    if match is None or (match[2] and match[3] not in ("k", "m", "g", "t")):
        raise BadValue(f"{text[:40]!r} is not a number.", "Write 8192, 8k (8,000) or 8K (8,192).")
    value = int(float(match[1] + (match[2] or "")) * MULTIPLIERS.get(match[3], 1))
    if not 0 < value <= MAX_BYTES:
        raise BadValue(f"{text[:40]} is not from 1 to {MAX_BYTES:,}.")
    return value


def length(text: str) -> int:
    """A length, or -1 for ``auto``."""
    if text.strip().lower() in ("auto", "-1"):
        return AUTO_LENGTH
    value = human(text)
    if value > 1 << 40:
        raise BadValue(f"{text[:40]} is no length of a context.")
    return value


def memory(text: str) -> int:
    """Bytes as vLLM reads them, or with a unit."""
    return human(text) if _HUMAN.fullmatch(text.strip()) else parse_bytes(text)


def gibibytes(text: str) -> int:
    """A number of GiB, in bytes."""
    value = float(text)
    if not 0 <= value <= 1 << 20:
        raise BadValue(f"{text[:40]} is not a size in GiB.")
    return int(value * (1 << 30))


def mapping(text: str) -> dict[str, Any]:
    """A JSON object; Python's way to write one is read too.

    Raises:
        BadValue: neither, or too long.
    """
    if len(text) > LONGEST_JSON:
        raise BadValue("The JSON is too long to be a flag's value.")
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, dict):
            return found
    raise BadValue(f"{text[:60]!r} is not a JSON object.", 'Write it like \'{"method": "mtp"}\'.')


def kv_dtype(text: str) -> str:
    """One of vLLM's cache types; ``bf16`` and ``fp16`` for their long names."""
    name = {"bf16": "bfloat16", "fp16": "float16", "half": "float16"}.get(text, text)
    return word(*KV_DTYPES)(name)


RANKS = whole(1, MAX_RANKS)
COUNT = whole(1, 1 << 24)

FLAGS = FlagTable(
    "vllm",
    (
        Flag(("--tensor-parallel-size", "-tp", "--tp"), RANKS, "Cards that share each layer."),
        Flag(("--pipeline-parallel-size", "-pp", "--pp"), RANKS, "Stages of layers."),
        Flag(("--data-parallel-size", "-dp", "--dp"), RANKS, "Copies of the model."),
        Flag(("--decode-context-parallel-size", "-dcp", "--dcp"), RANKS, "Ranks of a sequence."),
        Flag(("--enable-expert-parallel", "-ep", "--ep"), None, "Experts dealt to the cards."),
        Flag((EPLB,), None, "Experts moved until all cards have as much."),
        Flag(
            ("--gpu-memory-utilization", "--device-memory-utilization"),
            fraction,
            "The share of a card, as 0.92.",
        ),
        Flag(("--max-model-len",), length, "The longest sequence; auto for what fits."),
        Flag(("--max-num-seqs",), COUNT, "Sequences that run at once."),
        Flag(("--max-num-batched-tokens",), human, "Tokens of a step."),
        Flag(("--kv-cache-dtype",), kv_dtype, f"One of {', '.join(KV_DTYPES)}."),
        Flag(("--kv-cache-dtype-skip-layers",), word(), "Layers that keep the model's type."),
        Flag(("--block-size",), whole(1, 1 << 20), "Tokens of a block."),
        Flag(("--enforce-eager",), None, "No CUDA graphs."),
        Flag(("--enable-prefix-caching",), None, "Reuse of equal beginnings."),
        Flag(("--no-enable-prefix-caching",), None, "No reuse of equal beginnings."),
        Flag(("--enable-chunked-prefill",), None, "Prompts in parts."),
        Flag(("--no-enable-chunked-prefill",), None, "Prompts at once."),
        Flag(("--async-scheduling",), None, "The next step is planned during this one."),
        Flag(("--no-async-scheduling",), None, "Each step is planned when the last has ended."),
        Flag(("--num-gpu-blocks-override",), whole(1, 1 << 40), "Blocks, whatever was measured."),
        Flag(("--kv-cache-memory-bytes", "--kv-cache-memory"), memory, "The pool itself."),
        Flag(("--swap-space",), gibibytes, "GiB of host memory a card (V0)."),
        Flag(("--kv-offloading-size",), gibibytes, "GiB of host memory for prefixes, all ranks."),
        Flag(("--kv-offloading-backend",), word("native", "lmcache"), "Whose host memory."),
        Flag(("--kv-transfer-config",), mapping, "A connector, as JSON."),
        Flag(("--lmcache-max-local-cpu-size",), gibibytes, "LMCACHE_MAX_LOCAL_CPU_SIZE, a rank."),
        Flag(("--lmcache-chunk-size",), whole(1, 1 << 20), "LMCACHE_CHUNK_SIZE, in tokens."),
        Flag(("--cpu-offload-gb",), gibibytes, "GiB of weights kept in host memory."),
        Flag(("--quantization", "-q"), word(), "How weights are stored."),
        Flag(("--dtype",), word(*DTYPES), "The type of weights and activations."),
        Flag(("--speculative-config", "--spec-config", "-sc"), mapping, "Drafts, as JSON."),
        Flag(("--disable-hybrid-kv-cache-manager",), None, "Blocks for every token everywhere."),
        Flag(("--no-disable-hybrid-kv-cache-manager",), None, "Groups by kind (the default)."),
        Flag(("--mamba-cache-mode",), word("none", "align", "all"), "States that are kept."),
        Flag(("--mamba-cache-dtype",), word(*STATE_DTYPES), "The type of a convolution's state."),
        Flag(("--mamba-ssm-cache-dtype",), word(*STATE_DTYPES), "The type of a state."),
        Flag(("--attention-backend",), word(), "As FLASH_ATTN or FLASHMLA."),
        Flag(("--limit-mm-per-prompt",), mapping, "Images and more a prompt, as JSON."),
        Flag(("--language-model-only",), None, "No towers for images and sound."),
        Flag(("--runner",), word("auto", "generate", "pooling", "draft"), "What it is used for."),
        Flag(("--enable-lora",), None, "Adapters."),
        Flag(("--max-loras",), COUNT, "Adapters of a batch."),
        Flag(("--max-lora-rank",), COUNT, "The largest rank of one."),
        Flag(("--performance-mode",), word("balanced", "interactivity", "throughput"), "Batches."),
        Flag(("--device",), word("auto", "cuda", "cpu", "rocm", "xpu"), "What it runs on."),
        Flag(("--cpu-kvcache-space",), gibibytes, "On the CPU: VLLM_CPU_KVCACHE_SPACE, in GiB."),
        Flag(("--usage-context",), word("server", "offline"), "vllm serve, or the LLM class."),
        Flag(("--draft-layers",), whole(1, MAX_RANKS), "kvplan: a draft model's layers."),
        Flag(("--draft-kv-heads",), whole(1, MAX_RANKS), "kvplan: a draft model's KV heads."),
        Flag(("--draft-head-dim",), whole(1, 1 << 16), "kvplan: the width of one."),
    ),
)
