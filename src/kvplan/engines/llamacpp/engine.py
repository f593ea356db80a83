"""llama.cpp's server as an engine, and ik_llama.cpp beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from kvplan.core import weights as w
from kvplan.core.model import Model
from kvplan.core.version import ByVersion, Version
from kvplan.engines.base import Asked, Change, Engine, EnginePlan, Node
from kvplan.engines.chosen import Chosen
from kvplan.engines.flags import FlagTable
from kvplan.engines.llamacpp.buffers import buffers_of
from kvplan.engines.llamacpp.compute import CARD_CONTEXT, shape_of
from kvplan.engines.llamacpp.fitting import Fitted, Wish, fit_request
from kvplan.engines.llamacpp.flags import ALL, AUTO, FLAGS
from kvplan.engines.llamacpp.geometry import Geometry, geometry_of
from kvplan.engines.llamacpp.layout import Request, lay_out
from kvplan.engines.llamacpp.levers import changes_of
from kvplan.engines.llamacpp.placement import shares_of
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.engines.llamacpp.prints import cache_lines
from kvplan.engines.llamacpp.report import cell_pool, command, ledger, refusal, room_needed
from kvplan.engines.llamacpp.rules import (
    IK_MLA_DEFAULT,
    IK_VERSIONS,
    VERSIONS,
    Rules,
    ik_rules_of,
    rules_of,
)
from kvplan.engines.llamacpp.settings import (
    FIT_CONTEXT,
    FIT_TARGET,
    HOST_CACHE,
    Settings,
    given_context,
    resolve,
)
from kvplan.engines.releases import release

CONTEXT_STEP: Final = 256
IK_FLAGS: Final = ("--mla-use", "--swa-compress", "--attention-max-batch")
NO_HOST_CACHE: Final = 0
# server : host-memory prompt caching (#16391, October 2025).
HOST_CACHES: Final = ByVersion((("b0", NO_HOST_CACHE), ("b6720", HOST_CACHE)))
EXPERTS_ON_CPU: Final = re.compile(r"exps?\b[^,]{0,40}=\s*CPU|ffn_[^,]{0,80}exps[^,]{0,40}=\s*CPU")


class LlamaCpp(Engine):
    """llama-server: cells for every slot, blocks over cards and host memory."""

    name: ClassVar[str] = "llama.cpp"
    how: ClassVar[str] = "cells of slots, blocks over cards and host memory"
    versions: ClassVar[tuple[str, str]] = VERSIONS
    flags: ClassVar[FlagTable] = FLAGS

    def asked_length(self, flags: Mapping[str, Any]) -> int | None:
        """The tokens of one slot, where the flags say."""
        return given_context(flags)

    def plan(self, model: Model, node: Node, asked: Asked) -> LlamaPlan:
        """What the server takes of each card and of host memory.

        Raises:
            BadValue: flags that contradict each other, or that a build refuses.
        """
        known = release(self.name, asked.version, *self.versions)
        choose = Chosen(asked.flags)
        rules, mla = self.rules(known.version, choose)
        geometry = geometry_of(model.blocks, model.model_type)
        settings = resolve(model, geometry, rules, choose, mla)
        request = _request_of(model, node, asked, geometry, settings, choose)
        fitted = self._fitted(model, node, asked, request, choose)
        layout = fitted.layout
        starts = room_needed(layout, node) <= node.available_bytes
        host_cache = choose("--cache-ram", HOST_CACHES.at(known.version))
        return LlamaPlan(
            engine=self.name,
            version=known.text,
            model=model,
            node=node,
            asked=asked,
            launch=choose.launch,
            ledger=ledger(layout, node, asked, max(0, host_cache or 0)),
            pool=cell_pool(layout, asked),
            starts=starts,
            reason=None if starts else refusal(layout, node),
            prints=cache_lines(layout.caches),
            command=command(choose, layout),
            warnings=(*known.warnings, *fitted.said, *_warnings(model, layout.request, choose)),
            layout=layout,
        )

    def rules(self, version: Version, choose: Chosen) -> tuple[Rules, int]:
        """The rules of a build, and the form of latent attention that is asked for.

        A flag that only ik_llama.cpp has asks for its rules.
        """
        if any(choose(flag) is not None for flag in IK_FLAGS):
            return ik_rules_of(version), choose("--mla-use") or 0
        return rules_of(version), 0

    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """Types, slots, batches, experts, cards."""
        return changes_of(plan)

    def _fitted(
        self, model: Model, node: Node, asked: Asked, request: Request, choose: Chosen
    ) -> Fitted:
        settings = request.settings
        if asked.pool_bytes is not None and not settings.context_given:
            return Fitted(lay_out(_filling(request, asked.pool_bytes)))
        wanted = choose("--fit", "on" if settings.rules.automatic_fit else "off")
        if wanted != "on" or not settings.rules.automatic_fit:
            return Fitted(lay_out(request))
        given = choose.given
        placed = given.get("--n-gpu-layers", AUTO) != AUTO
        by_hand = ("--tensor-split", "--override-tensor", "--cpu-moe", "--n-cpu-moe")
        mode = choose("--split-mode", "layer")
        wish = Wish(
            free=node.available_bytes - CARD_CONTEXT,
            target=choose("--fit-target", FIT_TARGET),
            least_context=choose("--fit-ctx", FIT_CONTEXT),
            context_given=settings.context_given,
            placement_given=placed or any(given.get(flag) for flag in by_hand) or mode == "row",
        )
        return fit_request(model, request, wish)


class IkLlamaCpp(LlamaCpp):
    """ik_llama.cpp: forms of latent attention, one cache for all slots."""

    name: ClassVar[str] = "ik_llama.cpp"
    how: ClassVar[str] = "llama.cpp's fork: forms of latent attention, one cache for all slots"
    versions: ClassVar[tuple[str, str]] = IK_VERSIONS

    def rules(self, version: Version, choose: Chosen) -> tuple[Rules, int]:
        """The fork's rules."""
        mla = choose("--mla-use", IK_MLA_DEFAULT.at(version), "default of this build")
        choose("--attention-max-batch")
        return ik_rules_of(version), mla


def _request_of(
    model: Model, node: Node, asked: Asked, geometry: Geometry, settings: Settings, choose: Chosen
) -> Request:
    """What is to be laid out, before anything is fitted."""
    mode = choose("--split-mode", "layer")
    split = choose("--tensor-split")
    layers = choose("--n-gpu-layers", settings.rules.layers, "default of this build")
    file, pattern = choose("--quantization"), str(choose("--override-tensor") or "")
    experts = choose("--n-cpu-moe") or 0
    if choose("--cpu-moe") or EXPERTS_ON_CPU.search(pattern):
        experts = geometry.layers
    return Request(
        geometry=geometry,
        settings=settings,
        buffers=buffers_of(model, file, asked.weights_bytes),
        shape=shape_of(model),
        shares=shares_of(node.gpus, split, mode, choose("--main-gpu") or 0),
        layers=ALL if layers == AUTO else layers,
        experts=experts,
        mode=mode,
    )


def _filling(request: Request, pool: int) -> Request:
    """The longest context whose caches on the fullest card are within a stated pool."""
    streams = request.settings.streams
    low, high = 0, max(1, request.settings.trained * streams // CONTEXT_STEP) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if lay_out(request.with_context(middle * CONTEXT_STEP)).fullest.cache <= pool:
            low = middle
        else:
            high = middle
    return request.with_context(max(1, low) * CONTEXT_STEP)


def _warnings(model: Model, request: Request, choose: Chosen) -> Iterator[str]:
    settings = request.settings
    if "--ctx-size" not in choose.given and settings.rules.context == 0:
        yield (
            f"No --ctx-size: llama.cpp takes the trained context, {settings.trained:,} tokens, "
            "and caches for all of them."
        )
    if settings.unified and settings.slots > 1:
        yield (
            f"{settings.slots} slots share {settings.cells:,} cells: one long conversation can "
            "take them all, and the others are then cut off."
        )
    pattern = str(choose("--override-tensor") or "")
    if pattern and not EXPERTS_ON_CPU.search(pattern):
        yield f"--override-tensor {pattern[:60]} is not modelled: weights are placed without it."
    tensors = model.weights.tensors if model.weights else ()
    if any(weight.role in (w.TOWER, w.PROJECTOR) for weight in tensors):
        yield "The encoder (--mmproj) is another file, and it is not counted here."
