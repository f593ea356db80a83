"""The traits of a checkpoint, from a config's own keys.

What is of the wrong type here is as good as absent: these keys decide nothing about the shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kvplan.core.traits import Traits
from kvplan.readers.config import MAX_INTEGER, MAX_LAYERS
from kvplan.readers.rotary import rotary_tables

DRAFT_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
STATE_DTYPE_KEYS = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
TOWER_KEYS = ("vision_config", "audio_config", "vision_tower", "vision_embed_dim")
# Rotations that keep the declared length: vLLM 0.32.0, config/model.py, _get_and_verify_max_len.
UNSCALED = frozenset({
    "su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling", "default",
})  # fmt: skip
# Types whose routers add a correction to each expert's score, which training moves until all are
# drawn about as often (e_score_correction_bias, expert_bias or moe_statics in
# models/<type>/modeling_<type>.py of transformers 5.24.0).
EVEN: Final = frozenset({
    "afmoe", "axk1", "axk2", "bailing_hybrid", "deepseek_v3", "deepseek_v32", "deepseek_v4",
    "dots1", "dots3_note", "ernie4_5_moe", "ernie4_5_vl_moe", "exaone_moe", "glm4_moe",
    "glm4_moe_lite", "glm4v_moe", "glm5_next", "glm_moe_dsa", "hy_v3", "hy_v4", "hy_v4_vl",
    "inkling", "inkling2", "inkling2_loop", "kimi_k2", "kimi_k25", "kimi_linear", "kolibri1",
    "laguna", "lfm2_moe", "longcat_flash", "mimo_v2_flash", "minimax_m2", "minimax_m3_vl",
    "muse_spark", "nemotron_h", "solar_open", "step3p7",
})  # fmt: skip
NO_AUXILIARY_LOSS: Final = "noaux_tc"  # the same of configs with code of their own


def traits(raw: Mapping[str, Any], model_type: str, declared: int | None) -> Traits:
    """The traits of a config; a composite's text section stands above the file.

    Args:
        raw: the parsed file.
        model_type: its type.
        declared: the longest context that it declares.
    """
    text = raw.get("text_config")
    keys = {**raw, **text} if isinstance(text, Mapping) else raw
    quantised = raw.get("quantization_config") or keys.get("quantization_config")
    return Traits(
        dtype=_word(keys, "dtype", "torch_dtype").removeprefix("torch."),
        kv_cache_format=kv_cache_format(quantised),
        state_dtype=_word(keys, *STATE_DTYPE_KEYS),
        draft_layers=min(MAX_LAYERS, _whole(keys, *DRAFT_KEYS)),
        served_context=served_context(keys, model_type, declared),
        index_head_dim=_whole(keys, "index_head_dim"),
        index_pool=_whole(keys, "index_kpool"),
        index_topk=_whole(keys, "index_topk"),
        state_chunk=_whole(keys, "mamba_chunk_size", "chunk_size"),
        even_experts=model_type in EVEN or _word(keys, "topk_method") == NO_AUXILIARY_LOSS,
        multimodal=any(keys.get(key) for key in TOWER_KEYS),
        rotary=rotary_tables(keys, model_type, declared),
    )


def kv_cache_format(q: object) -> str:
    """``fp8`` or ``nvfp4`` where a quantisation names a scheme for the cache.

    vLLM 0.32.0, utils/torch_utils.py, get_kv_cache_quant_algo_string (ModelOpt) and
    model_executor/layers/attention/attention.py (compressed-tensors).
    """
    if not isinstance(q, Mapping):
        return ""
    inner = q.get("quantization")
    inner = inner if isinstance(inner, Mapping) else q
    scheme = inner.get("kv_cache_scheme") or q.get("kv_cache_scheme")
    scheme = scheme or inner.get("kv_cache_quant_algo") or q.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping):
        return {8: "fp8", 4: "nvfp4"}.get(scheme.get("num_bits"), "")  # type: ignore[arg-type]
    if isinstance(scheme, str) and scheme.lower() in ("fp8", "nvfp4"):
        return scheme.lower()
    return ""


def served_context(keys: Mapping[str, Any], model_type: str, declared: int | None) -> int | None:
    """The context of a scaled rotation, None where the declared one stands."""
    rope = keys.get("rope_parameters") or keys.get("rope_scaling")
    if not isinstance(rope, Mapping) or declared is None:
        return None
    kind = str(rope.get("rope_type") or rope.get("type"))
    if kind == "longrope":
        original = _whole(keys, "original_max_position_embeddings")
        return original or None
    factor = rope.get("factor")
    if kind in UNSCALED or "gemma3" in model_type or not isinstance(factor, int | float):
        return None
    return int(declared * factor) if 1 < factor < 1 << 20 else None


def _word(keys: Mapping[str, Any], *names: str) -> str:
    for name in names:
        found = keys.get(name)
        if isinstance(found, str) and found:
            return found[:40]
    return ""


def _whole(keys: Mapping[str, Any], *names: str) -> int:
    for name in names:
        found = keys.get(name)
        if found.__class__ is int and 0 < found <= MAX_INTEGER:
            return found
    return 0
