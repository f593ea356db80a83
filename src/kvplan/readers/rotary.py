"""The tables of sines and cosines that engines keep of a config's rotations.

vLLM 0.32.0, model_executor/layers/rotary_embedding/: a table has a row for every position the model
declares, of a scaled rotation for every one it reaches, whatever length it is served with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.core.traits import RotaryTable
from kvplan.core.units import MAX_TOKENS
from kvplan.readers.config import MAX_INTEGER

# Scalings whose table reaches ``factor`` times as far: from the declared length, or for YaRN from
# the one it was trained with (linear_scaling_rope.py, dynamic_ntk_scaling_rope.py, yarn_…_rope.py).
STRETCHED = frozenset({"linear", "dynamic"})
YARN = frozenset({"yarn", "deepseek_yarn"})
TWO_TABLES = frozenset({"su", "longrope"})  # a short one and a long one

# Types that always rotate over time, height and width, and types that do not rotate at all.
SECTIONED_TYPES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "qwen2_5_omni", "qwen3_omni")
UNROTATED_TYPES = frozenset({
    "nemotron_h", "jamba", "mamba", "mamba2", "falcon_mamba", "bloom", "mpt", "whisper", "opt",
    "gpt2", "gpt_bigcode", "t5", "bart", "rwkv",
})  # fmt: skip

# What the classes of these types rotate of a head where the file does not say it.
SHARES = {"qwen3_5": 0.25, "qwen3_next": 0.25, "qwen3_6": 0.25}

SHARE_KEYS = ("partial_rotary_factor", "rotary_pct", "rope_pct")


def rotary_tables(
    keys: Mapping[str, Any], model_type: str, declared: int | None
) -> tuple[RotaryTable, ...]:
    """The tables of a config, none where it declares no length.

    Args:
        keys: the file's keys, the text section's above them.
        model_type: its type.
        declared: the longest context that it declares.
    """
    if declared is None or model_type in UNROTATED_TYPES:
        return ()
    sectioned = model_type.startswith(SECTIONED_TYPES)
    return tuple(
        RotaryTable(
            positions=_positions(keys, scaling, declared),
            share=_share(keys, scaling, model_type),
            windowed=windowed,
            sectioned=sectioned or bool(scaling.get("mrope_section")),
        )
        for scaling, windowed in _rotations(keys, model_type)
    )


def _rotations(
    keys: Mapping[str, Any], model_type: str
) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Each rotation's parameters, and whether it is that of the layers with a window."""
    named = keys.get("rope_parameters") or keys.get("rope_scaling")
    found = named if isinstance(named, Mapping) else {}
    by_kind = {kind: part for kind, part in found.items() if isinstance(part, Mapping)}
    if by_kind:
        yield from ((part, "sliding" in kind) for kind, part in list(by_kind.items())[:4])
        return
    yield found, False
    if keys.get("rope_local_base_freq") or model_type.startswith("gemma3"):
        yield {}, True


def _positions(keys: Mapping[str, Any], scaling: Mapping[str, Any], declared: int) -> int:
    kind = scaling.get("rope_type") or scaling.get("type")
    factor = scaling.get("factor")
    stretch = factor if isinstance(factor, int | float) and 1 <= factor < 1 << 20 else 1
    original = scaling.get("original_max_position_embeddings")
    original = original or keys.get("original_max_position_embeddings")
    trained = original if original.__class__ is int and 0 < original <= MAX_INTEGER else 0
    rows = declared
    if kind in STRETCHED:
        rows = int(declared * stretch)
    elif kind in YARN and trained:
        rows = int(trained * stretch)
    elif kind in TWO_TABLES:
        rows = declared + trained
    return min(rows, MAX_TOKENS)


def _share(keys: Mapping[str, Any], scaling: Mapping[str, Any], model_type: str) -> float:
    """The rotated part of a head; a proportional rotation keeps whole heads, zeros included."""
    if scaling.get("rope_type") == "proportional":
        return 1.0
    for source in (scaling, keys):
        for key in SHARE_KEYS:
            found = source.get(key)
            if isinstance(found, int | float) and 0 < found <= 1:
                return float(found)
    return next((part for name, part in SHARES.items() if model_type.startswith(name)), 1.0)
