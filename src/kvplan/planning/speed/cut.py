"""How a plan cuts a model over cards, in one vocabulary for every engine.

    tp             ranks that share one sequence's attention
    lockstep       attention ranks with sequences of their own that step together (DP attention)
    expert_ranks   ranks that the experts are cut or dealt over
    pp             stages
    replicas       copies that step on their own

``tokens`` of a step below are those of one attention rank; the experts of a lock-step group see
those of all its ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kvplan.core.formats import FORMATS, Format
from kvplan.core.model import Model
from kvplan.engines.base import EnginePlan
from kvplan.engines.experts import EPLB

TP: Final = ("--tensor-parallel-size", "--tp-size")
PP: Final = ("--pipeline-parallel-size", "--pp-size")
DP: Final = ("--data-parallel-size", "--dp-size")
CACHE: Final = ("--kv-cache-dtype", "--cache-type-k", "--kv-dtype")
IN_LOCKSTEP: Final = ("--enable-dp-attention", "--enable-attention-dp", "--enable-expert-parallel")
# Engines on ggml: cards take layers in turn, one working at a time on a token, and prompts go on in
# pieces of --ubatch-size (llama.cpp b11434, llama-context.cpp: pipeline parallelism enabled).
LAYERED: Final = ("llama.cpp", "ollama")
SPLIT: Final = ("--split-mode",)
PIECE: Final = ("--ubatch-size", "--num_batch")
SIXTEEN: Final = 2.0
# Widths by the words of flags that are no name of a storage format.
WORDS: Final[Mapping[str, float]] = {"fp8": 1.0, "int8": 1.0, "nvfp4": 0.5625, "fp4": 0.5625}


class Cut(NamedTuple):
    """The layout of one replica, and how its cache is stored."""

    tp: int = 1
    pp: int = 1
    expert_ranks: int = 1
    lockstep: int = 1
    turns: int = 1  # cards that work one after the other
    piece: int = 0  # prompt tokens after which the next card begins, where cards take turns
    ggml: bool = False  # blocks of integers are multiplied as integers
    dealt: bool = False  # whole experts on ranks, tokens sent to them
    evened: bool = False  # and moved between ranks until all have as much to do
    kv_bytes: float = SIXTEEN  # of an element of the cache
    quantization: str = ""
    dtype: str = ""
    weights_bytes: int | None = None

    @property
    def ranks(self) -> int:
        """Cards of one replica."""
        return max(self.tp * self.lockstep, self.expert_ranks) * self.pp


class Placed(NamedTuple):
    """A cut and the copies of it that step on their own."""

    cut: Cut
    replicas: int


def placed(plan: EnginePlan) -> Placed:
    """The cut of a plan."""
    seen = _Flags(plan)
    pp, dp = seen.count(PP), seen.count(DP)
    tp = seen.count(TP) if any(flag in plan.launch for flag in TP) else plan.node.gpus
    in_turn = plan.engine in LAYERED and seen.text(SPLIT) in ("", "layer")
    turns = plan.node.gpus if in_turn else 1
    if plan.engine in LAYERED:
        tp, pp = 1, 1
    if plan.engine == "sglang":
        lockstep, ranks = (dp, tp // max(dp, 1)) if seen.on("--enable-dp-attention") else (1, tp)
        experts, dealt = tp, seen.count(("--ep-size",)) > 1
    elif plan.engine == "tensorrt-llm":
        lockstep, ranks = (tp, 1) if seen.on("--enable-attention-dp") else (1, tp)
        experts, dealt = tp, seen.count(("--ep-size",)) > 1
    else:
        dealt = seen.on("--enable-expert-parallel")
        lockstep, ranks = (dp if dealt else 1), tp
        experts = tp * lockstep
    cut = Cut(
        tp=max(1, ranks),
        pp=pp,
        expert_ranks=max(1, experts),
        lockstep=max(1, lockstep),
        turns=turns,
        piece=seen.count(PIECE) if turns > 1 else 0,
        ggml=plan.engine in LAYERED,
        dealt=dealt,
        evened=seen.on(EPLB),
        kv_bytes=kv_element_bytes(plan.model, seen.text(CACHE), plan),
        quantization=seen.text(("--quantization",)),
        dtype=seen.text(("--dtype",)),
        weights_bytes=plan.asked.weights_bytes,
    )
    return Placed(cut, max(1, plan.replicas // cut.lockstep))


def kv_element_bytes(model: Model, said: str, plan: EnginePlan | None = None) -> float:
    """Bytes of one element of the cache by what its flag says; ``auto`` is the checkpoint's."""
    if said in ("", "auto"):
        elements = getattr(getattr(plan, "settings", None), "elements", None)
        if elements is not None:
            return float(elements.bits) / 8
        said = model.traits.kv_cache_format
    if said in FORMATS:
        return FORMATS[said].bits_per_element / 8
    return next((width for word, width in WORDS.items() if word in said), SIXTEEN)


class _Flags:
    """A plan's flags by any of their spellings: what is in the launch, else what was given."""

    def __init__(self, plan: EnginePlan) -> None:
        self._launch = plan.launch
        self._given = plan.asked.flags

    def _find(self, flag: str) -> Any:
        found = self._given.get(flag)
        if found is None and flag in self._launch:
            return self._launch[flag]
        return found

    def count(self, flags: tuple[str, ...]) -> int:
        """A number of ranks; 1 where none is said."""
        found = next((x for x in map(self._find, flags) if x is not None), 1)
        return found if isinstance(found, int) and found > 0 else 1

    def on(self, flag: str) -> bool:
        """Whether a switch is on."""
        return bool(self._find(flag))

    def text(self, flags: tuple[str, ...]) -> str:
        """A word; a format's is its name."""
        found = next((x for x in map(self._find, flags) if x is not None), "")
        return found.name if isinstance(found, Format) else str(found)
