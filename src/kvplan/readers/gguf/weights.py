"""The tensors of GGUF files as weights: exact bytes, and the role that a name gives.

    blk.3.ffn_gate_exps.weight      block 3, the gates of all experts: (row length, rows, experts)
    blk.3.ffn_gate.5.weight         older files: the gate of expert 5
    token_embd.weight, output.weight, v.blk.0.attn_q.weight, enc.blk.0.attn_q.weight

Names: gguf-py/gguf/constants.py (llama.cpp, May 2026), TENSOR_NAMES.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.weights import ByBlock, Measured, Weight, Weights, count_parameters
from kvplan.readers.config import MAX_LAYERS
from kvplan.readers.gguf.header import Tensor

ROLES: dict[str, str] = {
    "token_embd": w.EMBEDDING, "per_layer_token_embd": w.EMBEDDING, "output": w.HEAD,
    "position_embd": w.POSITION, "token_types": w.POSITION, "attn_rel_b": w.POSITION,
    "cross_attn_rel_b": w.POSITION,
    "attn_q": w.QUERY, "attn_k": w.KEY, "attn_v": w.VALUE, "attn_qkv": w.QUERY,
    "attn_output": w.OUTPUT, "attn_o": w.OUTPUT, "attn_gate": w.QUERY,
    "cross_attn_q": w.QUERY, "cross_attn_k": w.KEY, "cross_attn_v": w.VALUE,
    "cross_attn_o": w.OUTPUT,
    "attn_q_a": w.LATENT, "attn_q_b": w.QUERY, "attn_kv_a_mqa": w.LATENT, "attn_kv_b": w.KEY,
    "attn_k_b": w.KEY, "attn_v_b": w.VALUE,
    "ffn_gate": w.MLP_IN, "ffn_up": w.MLP_IN, "ffn_down": w.MLP_OUT,
    "ffn_gate_shexp": w.MLP_IN, "ffn_up_shexp": w.MLP_IN, "ffn_down_shexp": w.MLP_OUT,
    "ffn_gate_exps": w.EXPERT_IN, "ffn_up_exps": w.EXPERT_IN, "ffn_gate_up_exps": w.EXPERT_IN,
    "ffn_down_exps": w.EXPERT_OUT,
    "ffn_gate_chexps": w.EXPERT_IN, "ffn_up_chexps": w.EXPERT_IN, "ffn_down_chexps": w.EXPERT_OUT,
    "ffn_latent_down": w.MLP_IN, "ffn_latent_up": w.MLP_OUT,
    "ffn_gate_inp": w.ROUTER, "ffn_gate_inp_shexp": w.ROUTER, "exp_probs_b": w.BIAS,
    "ssm_in": w.STATE_IN, "ssm_ba": w.STATE_IN, "ssm_alpha": w.STATE_IN, "ssm_beta": w.STATE_IN,
    "ssm_f_a": w.STATE_IN, "ssm_f_b": w.STATE_IN, "ssm_g_a": w.STATE_IN, "ssm_g_b": w.STATE_IN,
    "ssm_x": w.STATE_IN, "ssm_out": w.STATE_OUT,
    "time_mix_key": w.STATE_IN, "time_mix_value": w.STATE_IN, "time_mix_receptance": w.STATE_IN,
    "time_mix_gate": w.STATE_IN, "time_mix_output": w.STATE_OUT,
    "channel_mix_key": w.MLP_IN, "channel_mix_receptance": w.MLP_IN,
    "channel_mix_value": w.MLP_OUT,
    "shortconv.in_proj": w.STATE_IN, "shortconv.out_proj": w.STATE_OUT,
}  # fmt: skip

# By how a name begins, where ROLES has no entry; the first that fits.
BEGINNINGS = (
    ("indexer.", w.INDEXER), ("ssm_", w.STATE), ("time_mix_", w.STATE), ("channel_mix_", w.STATE),
    ("shortconv.", w.STATE),
)  # fmt: skip
TOP_LEVEL = {"v": w.TOWER, "a": w.TOWER, "mm": w.PROJECTOR, "resampler": w.PROJECTOR,
             "enc": w.ENCODER}  # fmt: skip
EXPERT_ROLES = {w.MLP_IN: w.EXPERT_IN, w.MLP_OUT: w.EXPERT_OUT}

# What llama.cpp keeps beside the blocks' input, in host memory (src/llama-model.cpp, dev_input).
INPUTS = ("token_embd.", "per_layer_token_embd.", "token_types.", "position_embd.")

# Tables that transformers derives: stored, and no parameters.
TABLES = {"rope_freqs", "rope_factors_long", "rope_factors_short", "attn_rot_embd"}


class _Name(NamedTuple):
    """A tensor's name in parts: ``of`` is without block, expert and ending."""

    top: str
    of: str
    ending: str
    one_expert: bool


def weigh(tensors: Iterable[Tensor], experts: int = 0, drawn: int = 0) -> Weights:
    """The weights of all tensors.

    Args:
        tensors: of every file of the model.
        experts: in each mixture; 0 where there are none.
        drawn: those that a token passes through.
    """
    counts: Counter[tuple[str, int, int, bool]] = Counter()
    types: Counter[str] = Counter()
    tensors = tuple(tensors)
    for tensor in tensors:
        types[tensor.type.name] += tensor.num_bytes
        name = _parse(tensor.name)
        if name.of not in TABLES and not _is_scale(name, tensor):
            role, rows, cols, count, drawn_only = _shape(name, tensor)
            counts[role, rows, cols, drawn_only] += count
    drawn = min(drawn, experts)
    found = tuple(
        Weight(role, rows, cols, count, count * drawn // experts if only and experts else -1)
        for (role, rows, cols, only), count in counts.items()
    )
    parameters, active = count_parameters(found)
    total = types.total()
    said = ", ".join(f"{kind} {size:,}" for kind, size in types.most_common())
    return Weights(
        tensors=found,
        parameters=parameters,
        active_parameters=active,
        storage=Measured(total, f"tensor infos: {total:,} bytes ({said})"),
        by_block=by_block(tensors),
    )


def by_block(tensors: Iterable[Tensor]) -> ByBlock:
    """Bytes of the embedding, of each block and its experts, and of the output."""
    blocks: defaultdict[int, int] = defaultdict(int)
    experts: defaultdict[int, int] = defaultdict(int)
    embedding = output = 0
    for tensor in tensors:
        place = _block(tensor.name)
        if place is not None:
            blocks[place] += tensor.num_bytes
            if _role(_parse(tensor.name)) in (w.EXPERT_IN, w.EXPERT_OUT):
                experts[place] += tensor.num_bytes
        elif tensor.name.startswith(INPUTS):
            embedding += tensor.num_bytes
        else:
            output += tensor.num_bytes
    count = max(blocks, default=-1) + 1
    return ByBlock(
        embedding,
        tuple(blocks[place] for place in range(count)),
        tuple(experts[place] for place in range(count)),
        output,
    )


def _block(name: str) -> int | None:
    """The block that a tensor belongs to; None outside them and beyond any model's depth."""
    parts = name.split(".", 2)
    if parts[0] != "blk" or len(parts) < 3 or not parts[1].isdecimal() or len(parts[1]) > 8:
        return None
    place = int(parts[1])
    return place if place < MAX_LAYERS else None


def _parse(name: str) -> _Name:
    """A name's parts."""
    parts = name.split(".")
    top = parts[0]
    ending = parts.pop() if parts[-1] in ("weight", "bias", "scale", "input_scale") else ""
    if "blk" in parts[:2]:
        parts = parts[parts.index("blk") + 2 :]
    one_expert = len(parts) > 1 and parts[-1].isdecimal() and parts[0].startswith("ffn_")
    return _Name(top, ".".join(parts[:-1] if one_expert else parts), ending, one_expert)


def _role(name: _Name) -> str:
    """What a tensor is for."""
    if name.top in TOP_LEVEL:
        return TOP_LEVEL[name.top]
    if name.of.startswith("indexer."):
        return w.INDEXER
    if "norm" in name.of:
        return w.NORM
    if name.ending == "bias":
        return w.BIAS
    role = ROLES.get(name.of)
    if role is None:
        role = next((role for start, role in BEGINNINGS if name.of.startswith(start)), w.SCALAR)
    return EXPERT_ROLES.get(role, role) if name.one_expert else role


def _shape(name: _Name, tensor: Tensor) -> tuple[str, int, int, int, bool]:
    """Role, rows, columns, how many, and whether a token passes only those drawn."""
    role, (cols, *rest) = _role(name), tensor.shape
    stacked = ROLES.get(name.of) in (w.EXPERT_IN, w.EXPERT_OUT)
    if stacked and rest:
        *middle, count = rest
        rows = middle[0] if middle else 1
        return (role, rows, cols, count, True) if middle else (role, cols, 1, count, True)
    rows = 1
    for length in rest:
        rows *= length
    if not rest:
        rows, cols = cols, 1
    return role, rows, cols, 1, name.one_expert


def _is_scale(name: _Name, tensor: Tensor) -> bool:
    """A scale that belongs to a quantised tensor (NVFP4), not to the model."""
    return name.ending == "input_scale" or (name.ending == "scale" and tensor.elements == 1)
