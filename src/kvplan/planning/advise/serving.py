"""A layout in each engine's own flags.

vLLM           --tensor-parallel-size t  --pipeline-parallel-size p
               --data-parallel-size d --enable-expert-parallel       attention on t of t × d ranks
SGLang         --tp-size t × d  --dp-size d --enable-dp-attention  --ep-size t × d
TensorRT-LLM   --tp-size t × d  --enable-attention-dp (t = 1)  --ep-size t × d
llama.cpp      the cards take layers in turn
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.device import Device
from kvplan.core.model import Model
from kvplan.core.sharding import divides
from kvplan.engines.names import LAYERED
from kvplan.planning.support import host_cards

SIZES: Final = (1, 2, 4, 8)
STAGES: Final = (1, 2, 4)
MOST_CARDS: Final = 16  # of one replica: two hosts, as stages
ROOM: Final = 0.8  # of a host's memory that weights may take, so that a cache is worth its name
LENGTH: Final = {"vllm": "--max-model-len", "sglang": "--context-length",
                 "tensorrt-llm": "--max-seq-len"}  # fmt: skip
CACHE: Final[Mapping[str, Mapping[str, str]]] = {
    "vllm": {"--kv-cache-dtype": "fp8"},
    "sglang": {"--kv-cache-dtype": "fp8_e4m3"},
    "tensorrt-llm": {"--kv-cache-dtype": "fp8"},
    "llama.cpp": {
        "--cache-type-k": "q8_0",
        "--cache-type-v": "q8_0",
        "--flash-attn": "on",
    },
}

# Less beside the pool: more of the card, and smaller activations.
SQUEEZED: Final[Mapping[str, Mapping[str, Any]]] = {
    "vllm": {"--gpu-memory-utilization": 0.95, "--max-num-batched-tokens": 2048},
}
GAIN: Final = 1.2  # in sequences, about the most that squeezing brings where a pool is small


class Layout(NamedTuple):
    """Cards of one replica: ``dp`` attention groups of ``tp`` ranks in lock step, ``pp`` stages.

    ``experts`` deals whole experts to the ranks.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    experts: bool = False

    @property
    def cards(self) -> int:
        """All of them."""
        return self.tp * self.pp * self.dp

    @property
    def said(self) -> str:
        """``TP4``, ``TP8 × PP2``, ``TP2 × DP4 EP``."""
        parts = [f"{n}{k}" for n, k in (("TP", self.tp), ("PP", self.pp), ("DP", self.dp)) if k > 1]
        return (" × ".join(parts) or "1 card") + (" EP" if self.experts else "")


def layouts(model: Model, engine: str, device: Device, most: int) -> Iterator[Layout]:
    """Every layout of a model on up to ``most`` cards of a kind, the fewest cards first.

    What ranks exchange in every layer stays inside a host. Stages are on two hosts only where the
    weights leave a single one no room.
    """
    host = host_cards(device)
    stored = model.weights.num_bytes if model.weights else 0
    held = stored < ROOM * host * (device.memory_bytes or 0)
    found = _layouts(model, engine, min(most, host if held else MOST_CARDS), host)
    yield from sorted(found, key=lambda one: one.cards)


def _layouts(model: Model, engine: str, most: int, host: int) -> Iterator[Layout]:
    if engine in LAYERED:
        most = min(most, host, len(model.blocks))
        yield from (Layout(pp=cards) for cards in SIZES if cards <= most)
        return
    sizes = [size for size in SIZES if divides(model, size) and size <= host]
    for tp in sizes:
        for pp in STAGES:
            if tp * pp <= min(most, 2 * host if host > 1 else 1) and pp <= len(model.blocks):
                yield Layout(tp=tp, pp=pp)
    if not (model.weights and model.weights.of_role(w.EXPERT_IN)):
        return
    for tp in sizes:
        for dp in SIZES:
            one_rank = engine == "tensorrt-llm" and dp > 1 and tp > 1
            if 1 < tp * dp <= min(most, host) and not one_rank:
                yield Layout(tp=tp, dp=dp, experts=True)


def flags_of(engine: str, layout: Layout, context: int, slots: int | None) -> dict[str, Any]:
    """The engine's flags of a layout and a longest sequence; ``slots`` are llama.cpp's sequences,
    which are given room when it starts.
    """
    found = ranks_of(engine, layout)
    if engine in LENGTH:
        found[LENGTH[engine]] = context
    elif engine in LAYERED and slots is not None:
        found |= {"--ctx-size": context * slots, "--parallel": slots, "--fit": "off"}
    return found


def ranks_of(engine: str, layout: Layout) -> dict[str, Any]:
    """What says how the ranks are laid out."""
    tp, pp, dp, experts = layout
    found: dict[str, Any] = {}
    if engine == "vllm":
        sizes = {"--tensor-parallel-size": tp, "--pipeline-parallel-size": pp,
                 "--data-parallel-size": dp}  # fmt: skip
        found = {flag: size for flag, size in sizes.items() if size > 1}
        return found | ({"--enable-expert-parallel": True} if experts else {})
    if engine in ("sglang", "tensorrt-llm"):
        found = {"--tp-size": tp * dp, "--pp-size": pp}
        found |= {"--ep-size": tp * dp} if experts else {}
        if dp > 1 and engine == "sglang":
            found |= {"--dp-size": dp, "--enable-dp-attention": True}
        elif dp > 1:
            found["--enable-attention-dp"] = True
    return found
