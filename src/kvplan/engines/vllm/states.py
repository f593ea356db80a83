"""Bytes of a recurrent state on one rank, in the types that a version of vLLM keeps it.

vLLM 0.32.0, model_executor/layers/mamba/mamba_utils.py (MambaStateShapeCalculator and
MambaStateDtypeCalculator) and model_executor/models/config.py.
"""

from __future__ import annotations

from kvplan.core.model import Model
from kvplan.core.states import LinearAttention, RecurrentState, StateTensor
from kvplan.core.units import ceil_div
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.settings import Settings

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
CONVOLUTION = "conv"
# Their checkpoint names the type of the state (Qwen3_5ForConditionalGenerationConfig); every
# published one of the first says float32.
NAMES_STATE_DTYPE = ("qwen3_5", "qwen4_exp", "nemotron")
STATE_IN_FLOAT32 = ("qwen3_5",)
# Kimi delta attention keeps its state in float32 (MambaStateDtypeCalculator.kda_state_dtype).
DELTA_IN_FLOAT32 = ("kimi_", "glm5_next", "bailing", "ling_")


def is_state_space(layer: RecurrentState) -> bool:
    """Mamba 2: heads with a matrix each, and channels for the groups beside the heads'."""
    tensors = {tensor.name: tensor for tensor in layer.tensors}
    conv, ssm = tensors.get(CONVOLUTION), tensors.get("ssm")
    return (
        conv is not None
        and ssm is not None
        and len(ssm.shape) == 3
        and conv.shape[0] > ssm.shape[0] * ssm.shape[1]
    )


def state_bytes(layer: RecurrentState, model: Model, settings: Settings, rules: Rules) -> int:
    """All tensors of one layer's state on one rank."""
    model_bytes = settings.model_bytes
    conv_bytes = BYTES.get(settings.flags.get("--mamba-cache-dtype", "auto"), model_bytes)
    matrix_bytes = _matrix_bytes(layer, model, settings, rules, conv_bytes)
    total = 0
    for tensor in layer.tensors:
        if tensor.name == CONVOLUTION:
            total += _convolution(layer, tensor, settings) * conv_bytes
        else:
            shared = tensor.on_rank(settings.layout.tp)
            each = matrix_bytes if tensor.element_bytes in (2, 4) else tensor.element_bytes
            total += shared.num_bytes // shared.element_bytes * each
    return total


def _convolution(layer: RecurrentState, conv: StateTensor, settings: Settings) -> int:
    """Elements of the last inputs: one row less than the kernel, and one for each draft token.

    Where the groups of a state space do not divide, they are raised to the ranks first.
    """
    channels, kernel = conv.shape
    tp = settings.layout.tp
    if is_state_space(layer):
        heads, head_dim, state = next(t.shape for t in layer.tensors if t.name == "ssm")
        groups = (channels - heads * head_dim) // (2 * state)
        if groups % tp:
            channels = heads * head_dim + 2 * max(groups, tp) * state
    drafts = settings.draft_tokens if _keeps_drafts(layer) else 0
    return ceil_div(channels, tp) * (kernel - 1 + drafts)


def _keeps_drafts(layer: RecurrentState) -> bool:
    """Mamba 1 takes no draft tokens."""
    ssm = next((t for t in layer.tensors if t.name == "ssm"), None)
    return ssm is None or is_state_space(layer)


def _matrix_bytes(
    layer: RecurrentState, model: Model, settings: Settings, rules: Rules, conv_bytes: int
) -> int:
    """An element of the state proper; without a word for it as the convolution's."""
    given = BYTES.get(settings.flags.get("--mamba-ssm-cache-dtype", "auto"))
    if given:
        return given
    if model.model_type.startswith(NAMES_STATE_DTYPE):
        named = BYTES.get(model.traits.state_dtype)
        if named:
            return named
    if model.model_type.startswith(STATE_IN_FLOAT32):
        return 4
    if model.model_type.startswith("nemotron") and rules.nemotron_state_bytes:
        return rules.nemotron_state_bytes
    if isinstance(layer, LinearAttention) and model.model_type.startswith(DELTA_IN_FLOAT32):
        return 4
    return conv_bytes
