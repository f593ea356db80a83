"""Cards to ranks: tensor, pipeline, data and context parallelism, and the layers of each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.launch import Setting
from kvplan.core.model import Model
from kvplan.core.sharding import divides, nearest_sizes, query_heads
from kvplan.engines.base import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """``replicas`` are independent copies: data parallel ranks, and cards beyond tp × pp."""

    tp: int
    pp: int
    dcp: int
    replicas: int
    source: str
    expert_parallel: bool = False

    @property
    def cards(self) -> int:
        """Cards in use."""
        return self.tp * self.pp * self.replicas

    def show(self, found: dict[str, Setting], flags: Mapping[str, Any]) -> None:
        """The layout as flags with their sources."""
        values = {
            "--tensor-parallel-size": self.tp,
            "--pipeline-parallel-size": self.pp,
            "--data-parallel-size": self.replicas,
        }
        for flag, value in values.items():
            source = self.source if value > 1 else "default"
            found[flag] = Setting(value, "flag" if flag in flags else source)
        if self.dcp > 1:
            found["--decode-context-parallel-size"] = Setting(self.dcp, "flag")


def layout_of(model: Model, node: Node, flags: Mapping[str, Any]) -> tuple[Layout, list[str]]:
    """The layout that flags and cards give, and what was proposed on the way.

    Without a size the cards are tensor parallel where the model divides; else by the largest part
    of them that it divides, the rest being copies.

    Raises:
        BadValue: heads that do not divide, or ranks that are more than the cards.
    """
    said: list[str] = []
    pp = flags.get("--pipeline-parallel-size", 1)
    tp = flags.get("--tensor-parallel-size")
    dp = flags.get("--data-parallel-size")
    if tp is None:
        tp = _proposed(model, max(1, node.gpus // (pp * (dp or 1))), said)
    elif not divides(model, tp):
        raise _indivisible(model, tp)
    _check_stages(model, pp)
    dcp = flags.get("--decode-context-parallel-size", 1)
    if tp % dcp:
        raise BadValue(
            f"--decode-context-parallel-size {dcp} does not divide the {tp} ranks of tensor "
            "parallelism that it shares."
        )
    replicas = dp or max(1, node.gpus // (tp * pp))
    layout = Layout(
        tp=tp,
        pp=pp,
        dcp=dcp,
        replicas=replicas,
        source=f"default: {node.gpus} card{'s' if node.gpus > 1 else ''}",
        expert_parallel=bool(flags.get("--enable-expert-parallel")),
    )
    _check_cards(layout, node, said)
    return layout, said


def _proposed(model: Model, cards: int, said: list[str]) -> int:
    """The largest divisor of the cards that the model's heads divide by."""
    sizes = (size for size in range(cards, 0, -1) if cards % size == 0)
    found = next(size for size in sizes if divides(model, size))
    if found != cards:
        heads = ", ".join(map(str, query_heads(model)))
        said.append(
            f"{model.name} has {heads} query heads, which {cards} ranks do not divide: planned as "
            f"tensor parallel {found} × {cards // found} copies."
        )
    return found


def _indivisible(model: Model, tp: int) -> BadValue:
    heads = ", ".join(map(str, query_heads(model)))
    sizes = " or ".join(map(str, nearest_sizes(model, tp)))
    return BadValue(
        f"{model.name} has {heads} query heads, which --tensor-parallel-size {tp} does not divide.",
        f"The nearest that do: {sizes}.",
    )


def _check_stages(model: Model, pp: int) -> None:
    if pp > max(1, len(model.blocks)):
        raise BadValue(
            f"--pipeline-parallel-size {pp} is more than the {len(model.blocks)} layers of "
            f"{model.name}."
        )


def _check_cards(layout: Layout, node: Node, said: list[str]) -> None:
    if layout.cards > node.gpus > 1:
        raise BadValue(
            f"tp {layout.tp} × pp {layout.pp} × dp {layout.replicas} are {layout.cards} cards, "
            f"and --gpus says {node.gpus}.",
            f"Pass --gpus {layout.cards}, or fewer ranks.",
        )
    if layout.cards > node.gpus:
        said.append(f"Planned for the {layout.cards} cards that tp × pp × dp take.")
    elif layout.cards < node.gpus:
        said.append(f"{node.gpus - layout.cards} of {node.gpus} cards stay unused.")


def stage_of_blocks(blocks: int, pp: int) -> list[int]:
    """The pipeline stage of each block.

    The remainder goes to the stages before the last, which has the head besides (vLLM 0.32.0,
    distributed/utils.py, get_pp_indices).
    """
    each, more = divmod(blocks, pp)
    sizes = [each] * pp
    for back in range(2, more + 2):
        sizes[-back] += 1
    return [stage for stage, size in enumerate(sizes) for _ in range(size)]
