"""The flags of a start with their defaults by release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvplan.core.errors import BadValue
from kvplan.core.formats import FORMATS, Format
from kvplan.core.launch import Launch
from kvplan.core.model import Model
from kvplan.core.version import ByVersion, Version
from kvplan.engines.base import Asked, Node
from kvplan.engines.chosen import Chosen, check_heads
from kvplan.engines.tensorrt_llm.flags import CACHE_TYPES

# Logs of 2024 have blocks of 64 tokens, those of 2025 of 32 (0.19.0 is the first with a version).
TOKENS_PER_BLOCK: Final = ByVersion((("0.5", 64), ("0.17", 32)))
# "Using N tokens in paged KV cache" was not a whole number of blocks.
WHOLE_BLOCKS_SINCE: Final = Version.parse("0.8")
PYTORCH_SINCE: Final = Version.parse("1.0")  # the default backend of trtllm-serve

FRACTION: Final = 0.9
MAX_BATCH: Final = 2048
MAX_NUM_TOKENS: Final = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A start's resolved values; ``launch`` says where each is from."""

    tp: int
    pp: int
    ep: int
    attention_dp: bool
    replicas: int
    fraction: float
    max_tokens: int | None
    block: int
    whole_blocks: bool
    fmt: Format
    windows: tuple[int, ...]
    max_seq_len: int
    max_batch: int
    max_num_tokens: int
    beams: int
    host_bytes: int
    backend: str
    launch: Launch

    @property
    def attention_tp(self) -> int:
        """The ranks that share one cache."""
        return 1 if self.attention_dp else self.tp


def resolve(model: Model, node: Node, asked: Asked, version: Version) -> Settings:
    """The settings that a start has.

    Raises:
        BadValue: a layout that the model or the cards do not divide.
    """
    choose = Chosen(asked.flags)
    attention_dp = bool(choose("--enable-attention-dp", None))
    pp = choose("--pp-size", 1)
    tp = choose("--tp-size", max(1, node.gpus // pp), "--gpus")
    _check(model, node, tp, pp, ranks=1 if attention_dp else tp)
    longest = model.traits.served_context or model.max_context_tokens or asked.context
    backend = "pytorch" if version >= PYTORCH_SINCE else "tensorrt"
    return Settings(
        tp=tp,
        pp=pp,
        ep=choose("--ep-size", 1),
        attention_dp=attention_dp,
        replicas=(tp if attention_dp else 1) * max(1, node.gpus // (tp * pp)),
        fraction=choose("--free-gpu-memory-fraction", FRACTION),
        max_tokens=choose("--max-tokens", None),
        block=choose("--tokens-per-block", TOKENS_PER_BLOCK.at(version)),
        whole_blocks=version >= WHOLE_BLOCKS_SINCE,
        fmt=_format(model, choose("--kv-cache-dtype", "auto")),
        windows=choose("--max-attention-window", None) or (),
        max_seq_len=choose("--max-seq-len", longest, "the model's"),
        max_batch=choose("--max-batch-size", MAX_BATCH),
        max_num_tokens=choose("--max-num-tokens", MAX_NUM_TOKENS),
        beams=choose("--max-beam-width", 1),
        host_bytes=choose("--host-cache-size", None) or 0,
        backend=choose("--backend", backend),
        launch=choose.launch,
    )


def _check(model: Model, node: Node, tp: int, pp: int, *, ranks: int) -> None:
    if tp * pp > node.gpus > 1:
        raise BadValue(f"--tp-size {tp} and --pp-size {pp} need {tp * pp} cards, not {node.gpus}.")
    check_heads(model, ranks, "--tp-size")


def _format(model: Model, name: str) -> Format:
    """``auto`` is the checkpoint's own scheme, or 16 bits."""
    found = CACHE_TYPES[name]
    if found is not None:
        return found
    return CACHE_TYPES.get(model.traits.kv_cache_format) or FORMATS["bf16"]
