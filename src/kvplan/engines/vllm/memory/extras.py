"""What flags add to the model: adapters (LoRA), and the drafts of speculative decoding."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.launch import Launch
from kvplan.core.model import Model
from kvplan.core.weights import Unquantised, Weight
from kvplan.engines.vllm.draft import draft_of
from kvplan.engines.vllm.memory.batch import setting
from kvplan.engines.weights import RankWeights

ADAPTED = frozenset({
    w.QUERY, w.KEY, w.VALUE, w.OUTPUT, w.MLP_IN, w.MLP_OUT, w.STATE_IN, w.STATE_OUT,
})  # fmt: skip
DRAFT_ERROR: Final = 0.3
ELEMENT_BYTES: Final = 2


class Extra(NamedTuple):
    """Bytes of one rank, their error and their source."""

    num_bytes: int
    error: int
    source: str


def adapters(rank: RankWeights, launch: Launch) -> Extra | None:
    """The slots of adapters: for each adapted matrix of rows × columns and each slot, a rank's
    rows + columns.

    vllm/lora/layers/base_linear.py, create_lora_weights (0.32.0).
    """
    if not setting(launch, "--enable-lora", False):
        return None
    slots = int(setting(launch, "--max-loras", 1))
    width = int(setting(launch, "--max-lora-rank", 16))
    sides = sum((t.rows + t.cols) * t.copies for t in rank.tensors if t.role in ADAPTED)
    num_bytes = sides * slots * width * ELEMENT_BYTES
    return Extra(num_bytes, num_bytes // 10, f"{slots} adapters of rank {width}")


def draft_weights(model: Model, rank: RankWeights, launch: Launch) -> Extra | None:
    """The layers that draft: each as heavy as one of the target's, and the projection of an
    embedding beside a hidden state.

    A draft model of its own is only known by the layers that ``--draft-layers`` states.
    """
    flags = {flag: setting.value for flag, setting in launch.settings.items()}
    draft = draft_of(model, flags)
    if draft is None or not draft.layers:
        return None
    depth = max(1, len(model.blocks))
    inside = tuple(t for t in rank.tensors if t.role not in OUTSIDE)
    hidden = model.hidden_size or 0
    layer = rank.storage.num_bytes(inside) // depth if inside else rank.num_bytes // depth
    joint = Unquantised(ELEMENT_BYTES, "16 bits").num_bytes((Weight(w.MLP_IN, hidden, 2 * hidden),))
    num_bytes = draft.layers * layer + joint
    said = (
        f"{draft.layers} layer{'s' if draft.layers > 1 else ''} of {draft.method} as the target's"
    )
    return Extra(num_bytes, round(num_bytes * DRAFT_ERROR), said)


OUTSIDE = frozenset({w.EMBEDDING, w.HEAD, w.POSITION, w.TOWER, w.PROJECTOR, w.CODEC})
