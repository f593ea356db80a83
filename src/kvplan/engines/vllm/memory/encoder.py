"""What encoders of images and sound hold while the model is profiled.

The profile run encodes as many items of the largest kind as its budget takes and keeps their
embeddings while the language model runs: budget × hidden × bytes, several levels of them where a
model feeds its layers from several (Qwen3-VL). The encoder's own peak is over before.

vllm/v1/worker/gpu_model_runner.py, profile_run (0.19.0); v1/worker/gpu/model_runner.py (0.27.0):
the second runner profiles no encoder before 0.27.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.model import Model
from kvplan.core.units import GIB
from kvplan.core.version import Version
from kvplan.engines.vllm.memory.batch import Batch

# Tokens of the largest item that a processor makes by default: 12,845,056 pixels of 28 × 28 a
# token (Qwen2-VL, Qwen2.5-VL), 16,777,216 of 32 × 32 (Qwen3-VL and later).
ITEM_TOKENS: dict[str, int] = {
    "qwen2_vl": 16384, "qwen2_5_vl": 16384, "qwen3_vl": 16384, "qwen3_vl_moe": 16384,
    "qwen3_5": 16384, "qwen3_5_moe": 16384, "dots_ocr": 14400,
}  # fmt: skip
# Their videos can be ten times as long as an image, and limits decide: 0.4 to 2.7 GiB were kept.
VIDEO_TYPES = frozenset({"qwen3_vl", "qwen3_vl_moe"})
VIDEO_ERROR: Final = 2 * GIB
LEVELS: dict[str, int] = {"qwen3_vl": 4, "qwen3_vl_moe": 4}
PATCHES_PER_TOKEN: Final = 4
# Encoder-decoders ran on V0 until then: worker/enc_dec_model_runner.py, profile_run (0.10.0).
PAGED_SINCE = Version((0, 11))
PROFILED_BY_SECOND_SINCE = Version((0, 27))
# The rest that six multimodal runs show beyond their embeddings, 0.01 to 0.15 GiB.
KEPT_ERROR: Final = GIB // 8


MM_ITEMS: Final = ("image", "video")


def prompt_items(model: Model, limits: Mapping[str, Any]) -> tuple[int, int] | None:
    """Images and videos that limits allow in a prompt, and tokens of all at their largest.

    None where no limit is given, or where the largest item of a model is not known.
    """
    item = ITEM_TOKENS.get(model.model_type)
    counts = [limits.get(kind, 0) for kind in MM_ITEMS]
    items = sum(count for count in counts if isinstance(count, int) and count > 0)
    return (items, items * item) if item and items else None


class Encoder(NamedTuple):
    """Embeddings kept during the run, the encoder's own peak before it, and their error."""

    tokens: int
    kept: int
    peak: int
    error: int


NO_ENCODER: Final = Encoder(0, 0, 0, 0)


def encoder_of(
    model: Model, batch: Batch, version: Version, *, second_runner: bool, towers: bool
) -> Encoder:
    """The encoder's part of a profile run."""
    if model.encoder_tokens and version < PAGED_SINCE:
        # One forward over every sequence's whole encoder input: its states stay, and keys and
        # values of a layer over them come beside.
        tokens = batch.sequences * model.encoder_tokens
        kept = tokens * batch.hidden * batch.element_bytes
        return Encoder(tokens, kept, 3 * kept, kept // 4)
    tensors = model.weights.tensors if model.weights is not None else ()
    wide = max((t.rows for t in tensors if t.role == w.TOWER and t.copies > 1), default=0)
    if not towers or not wide or batch.hidden == 0:
        return NO_ENCODER
    if second_runner and version < PROFILED_BY_SECOND_SINCE:
        return NO_ENCODER
    tokens = max(batch.tokens, ITEM_TOKENS.get(model.model_type, 0))
    levels = LEVELS.get(model.model_type, 1)
    kept = tokens * batch.hidden * levels * batch.element_bytes
    item = ITEM_TOKENS.get(model.model_type, 0)
    narrow = max((t.cols for t in tensors if t.role == w.TOWER and t.rows == wide), default=0)
    patches = item * PATCHES_PER_TOKEN
    peak = patches * (3 * wide // batch.tp + 6 * narrow) * batch.element_bytes
    error = VIDEO_ERROR if model.model_type in VIDEO_TYPES else KEPT_ERROR
    return Encoder(tokens, kept, peak, error)
