"""What --quantization asks of a checkpoint, and whether the engine makes it so at loading.

made       the engine turns 16-bit weights into it as it loads them
stored     only a checkpoint that is stored so has it: the command has to name that one
left       the word leaves it to the checkpoint, which says how it is stored
unknown    no word of any engine
"""

from __future__ import annotations

import difflib
from typing import Final

from kvplan.core.model import Model
from kvplan.core.weight_formats import EXPERTS, FORMATS, format_of_word, key_of
from kvplan.core.weights import Unquantised
from kvplan.engines.names import LAYERED

# vLLM 0.32.0: model_executor/layers/quantization/fp8.py (is_checkpoint_fp8_serialized false),
# experts_int8.py, online/ (the shorthands of config/quantization.py); bitsandbytes earlier.
# SGLang 0.5.12: srt/server_args.py (QUANTIZATION_CHOICES, its comments on online ones).
# transformers 5.24: utils/quantization_config.py (BitsAndBytesConfig, FineGrainedFP8Config).
MADE: Final[dict[str, frozenset[str]]] = {
    "vllm": frozenset({
        "fp8", "ptpc_fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "mxfp8",
        "experts_int8", "int8_per_channel_weight_only", "nvfp4_per_token", "bitsandbytes",
    }),
    "sglang": frozenset({"fp8", "mxfp8", "nvfp4_online", "modelopt_fp8", "bitsandbytes"}),
    "transformers": frozenset({"bitsandbytes", "nf4", "int8", "fp8"}),
}  # fmt: skip
LEFT: Final = frozenset({
    "compressed_tensors", "quark", "torchao", "moe_wna16", "modelopt_mixed", "modelopt_mxfp8",
    "humming", "online", "deepseek_v4_fp8", "marlin", "petit_nvfp4", "auto_round_int8", "modelslim",
    "mxfp_w4a8", "w4afp8", "qoq", "hqq", "aqlm", "rtn", "quip", "tpu_int8", "deepspeedfp", "ipex",
    "fp_quant", "cpu_awq", "ascend", "mixed_precision", "no_quant", "none", "auto",
})  # fmt: skip


def said_of_word(model: Model, engine: str, word: str) -> str | None:
    """What a person has to know of the word for this model; None where it is plain."""
    if not word or engine in LAYERED:  # their word is a file's type
        return None
    key, found = key_of(word), format_of_word(word)
    plain = model.weights is not None and isinstance(model.weights.storage, Unquantised)
    if found is None and key not in LEFT:
        near = difflib.get_close_matches(key, [*FORMATS, *LEFT], n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        return (
            f"--quantization {word[:40]} is no way to store weights that kvplan knows{meant}: they "
            "are planned as the checkpoint stores them."
        )
    if not plain or key in ("no_quant", "none", "auto"):
        return None
    if found is None:
        return (
            f"--quantization {word} leaves it to the checkpoint, and that of {model.name} is not "
            "quantised: name the copy that is."
        )
    if frozenset(found.shares) <= EXPERTS and not _has_experts(model):
        return f"--quantization {word} stores experts alone, and {model.name} has none."
    if key in MADE.get(engine, frozenset()):
        return None
    return (
        f"{engine} does not make {word} out of the 16 bits of {model.name} at loading: planned as "
        "if it were stored so, and the command needs the name of a copy that is."
    )


def _has_experts(model: Model) -> bool:
    return model.weights is not None and any(
        tensor.role in EXPERTS for tensor in model.weights.tensors
    )
