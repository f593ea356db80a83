"""The peak of the profile run: what stays through it, and the largest of its phases.

    stays    cuBLAS workspace + the experts' workspace + the encoder's embeddings
    phases   encoder | forward: tokens × (3 × inner + 4.25 × hidden)
                     | sampler: hidden states + gathered rows + logits × c

``forward`` is gate and up, their product, the residual and what the compiled graph keeps beside it
(4.25 was fitted on four runs bound by it, 0.05 GiB off on five others).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.units import GIB, MIB, format_bytes
from kvplan.core.version import Version
from kvplan.engines.vllm.memory.batch import Batch
from kvplan.engines.vllm.memory.encoder import Encoder
from kvplan.engines.vllm.memory.machine import Machine
from kvplan.engines.vllm.memory.sampler import Sampler

# ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize (torch 2.13).
CUBLAS_HOPPER: Final = 32 * MIB
CUBLAS_OTHER: Final = 8 * MIB

HIDDEN_KEPT: Final = 4.25
FORWARD_ERROR: Final = 0.06
# A stage without the head holds its output and its residual beside.
STAGE_HIDDEN: Final = 2.0

# v1/worker/workspace.py came with 0.13: from then on experts keep their workspace; before it was
# freed with the layer.
KEPT_WORKSPACE_SINCE = Version((0, 13))


class Activation(NamedTuple):
    """The peak, what of it stays allocated, its error, and how it comes about."""

    peak: int
    stays: int
    error: int
    source: str
    bound_by: str


def experts_workspace(batch: Batch) -> int:
    """Two buffers a layer of experts works in, shared by all layers.

    vllm/model_executor/layers/fused_moe/fused_moe.py, TritonExperts.workspace_shapes (0.19.0):
    tokens × drawn × (max(inner, hidden) + max(gate and up, hidden)).
    """
    found = batch.experts
    if found is None:
        return 0
    width = max(found.inner, batch.hidden) + max(found.wide, batch.hidden)
    return batch.tokens * found.drawn * width * batch.element_bytes


def forward_bytes(batch: Batch) -> int:
    """The widest point of one layer, over all tokens."""
    inside = max(3 * batch.inner, batch.attention)
    kept = HIDDEN_KEPT + (STAGE_HIDDEN if batch.pp > 1 else 0.0)
    return round(batch.tokens * batch.element_bytes * (inside + kept * batch.hidden))


def activation_of(
    batch: Batch,
    version: Version,
    machine: Machine,
    sampler: Sampler | None,
    encoder: Encoder,
) -> Activation:
    """The peak of a rank; without a sampler for models that only embed."""
    cublas = CUBLAS_HOPPER if machine.hopper else CUBLAS_OTHER
    workspace = experts_workspace(batch)
    kept = workspace if version >= KEPT_WORKSPACE_SINCE else 0
    phases = {
        "forward": forward_bytes(batch) + workspace - kept + encoder.kept,
        "encoder": encoder.peak,
    }
    errors = {
        "forward": round(phases["forward"] * FORWARD_ERROR),
        "encoder": encoder.peak // 2,
    }
    if sampler is not None:
        phases["sampler"] = batch.hidden_bytes + sampler.peak + encoder.kept
        errors["sampler"] = sampler.error
    bound_by = max(phases, key=lambda name: phases[name])
    stays = cublas + kept
    error = errors[bound_by] + (encoder.error if bound_by != "encoder" else 0) + workspace // 20
    return Activation(
        peak=phases[bound_by] + stays,
        stays=stays,
        error=error + GIB // 64,
        source=_said(bound_by, batch, sampler, workspace, encoder),
        bound_by=bound_by,
    )


def _said(
    bound_by: str, batch: Batch, sampler: Sampler | None, workspace: int, encoder: Encoder
) -> str:
    """The arithmetic of the phase that decides."""
    parts = []
    if bound_by == "sampler" and sampler is not None:
        parts.append(
            f"sampler: {batch.sequences:,} sequences × {batch.vocabulary:,} tokens × "
            f"{sampler.bytes_per_logit} B, with hidden states of {batch.tokens:,} tokens"
        )
    elif bound_by == "encoder":
        parts.append(f"encoder: {encoder.tokens:,} tokens of its largest item")
    else:
        parts.append(
            f"forward: {batch.tokens:,} tokens × (3 × {batch.inner:,} + 4.25 × {batch.hidden:,}) "
            f"× {batch.element_bytes} B"
        )
    if workspace:
        parts.append(f"experts' workspace {format_bytes(workspace)}")
    if encoder.kept:
        parts.append(
            f"embeddings of {encoder.tokens:,} encoder tokens {format_bytes(encoder.kept)}"
        )
    return " + ".join(parts)
