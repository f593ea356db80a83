"""Ollama as an engine: three ways to the same caches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar

from kvplan.core.formats import FORMATS
from kvplan.core.model import Model
from kvplan.core.version import Version
from kvplan.engines.base import Asked, Change, Engine, EnginePlan, Node
from kvplan.engines.chosen import Chosen
from kvplan.engines.flags import FlagTable
from kvplan.engines.llamacpp.buffers import Buffers, buffers_of
from kvplan.engines.llamacpp.compute import CARD_CONTEXT, shape_of
from kvplan.engines.llamacpp.engine import LlamaCpp
from kvplan.engines.llamacpp.fitting import Wish, fit_request
from kvplan.engines.llamacpp.flags import ALL
from kvplan.engines.llamacpp.geometry import Geometry, geometry_of
from kvplan.engines.llamacpp.layout import Layout, Request, lay_out
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.engines.llamacpp.prints import cache_lines
from kvplan.engines.llamacpp.report import cell_pool, ledger, refusal
from kvplan.engines.llamacpp.rules import Windows, rules_of
from kvplan.engines.llamacpp.settings import UNTRAINED_CONTEXT, Settings
from kvplan.engines.ollama import flags as f
from kvplan.engines.ollama.cells import LONG_MEMORY, MEMORY, OWN_ENGINE, EngineSettings
from kvplan.engines.ollama.eras import (
    BATCH,
    BUILDS,
    CONTEXTS,
    FLASH_ATTENTION,
    FLASH_SINCE,
    MINIMUM,
    PARALLEL,
    VERSIONS,
    Era,
    batch_by_context,
    context_by_memory,
    era_of,
)
from kvplan.engines.ollama.estimate import Estimate, assign, expect, sizes_of, towers
from kvplan.engines.ollama.plan import OllamaPlan, estimate_line, measured_lines
from kvplan.engines.releases import release

LEAST_VISION_CONTEXT = 2048


class Ollama(Engine):
    """Ollama: a context for each slot, layers over cards and host memory as they fit."""

    name: ClassVar[str] = "ollama"
    how: ClassVar[str] = "num_ctx × parallel cells, layers placed by an estimate or a measurement"
    versions: ClassVar[tuple[str, str]] = VERSIONS
    flags: ClassVar[FlagTable] = f.FLAGS

    def asked_length(self, flags: Mapping[str, Any]) -> int | None:
        """The context of one slot, where the flags say."""
        return flags.get(f.CONTEXT) or flags.get(f.CONTEXT_LENGTH) or None

    def plan(self, model: Model, node: Node, asked: Asked) -> OllamaPlan:
        """What Ollama loads where.

        Raises:
            BadValue: weights that are unknown, or a cache type that does not divide a row.
        """
        known = release(self.name, asked.version, *self.versions)
        era = era_of(known.version)
        start = _Start(model, node, asked, known.version)
        if era is Era.SERVER:
            found = start.served()
        elif era is Era.MEASURE:
            found = start.measured()
        else:
            found = start.estimated()
        return replace(found, version=known.text, warnings=known.warnings + found.warnings)

    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """Cache types, slots, context, cards."""
        assert isinstance(plan, OllamaPlan)
        asked, settings = plan.asked, plan.settings

        def other(name: str, said: str, note: str, **changed: Any) -> Change:
            flags = {**asked.flags, **{f"--{key}": value for key, value in changed.items()}}
            return Change(name, said, plan.model, plan.node, replace(asked, flags=flags), note)

        if settings.k.name == "f16":
            said = "OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_FLASH_ATTENTION=1"
            kind = {"OLLAMA_KV_CACHE_TYPE": "q8_0", "OLLAMA_FLASH_ATTENTION": "on"}
            yield other("q8_0 cache", said, "needs flash attention", **kind)
        twice = 2 * settings.slots
        said = f"OLLAMA_NUM_PARALLEL={twice}"
        note = "each slot keeps its context: the cache doubles"
        yield other("twice the slots", said, note, OLLAMA_NUM_PARALLEL=twice)
        more = replace(plan.node, gpus=2 * plan.node.gpus)
        note = "memory adds up, speed does not"
        yield Change("twice the cards", f"--gpus {more.gpus}", plan.model, more, asked, note)


class _Start:
    """One start of a model, in each of the three ways."""

    def __init__(self, model: Model, node: Node, asked: Asked, version: Version) -> None:
        self.model, self.node, self.asked = model, node, asked
        self.version, self.build = version, BUILDS.at(version)
        self.choose = Chosen(asked.flags)
        self.geometry: Geometry = geometry_of(model.blocks, model.model_type)
        self.free = node.memory_bytes - CARD_CONTEXT

    def buffers(self) -> Buffers:
        """The weights by place."""
        return buffers_of(self.model, self.choose(f.FILE_TYPE), self.asked.weights_bytes)

    def context(self) -> int:
        """The context of one slot: an option, the environment, or a default; as trained at most."""
        default = CONTEXTS.at(self.version)
        total = self.node.memory_bytes * self.node.gpus
        said = f"default of {self.version}"
        if not default:
            default, said = context_by_memory(total), "default by the cards' memory"
        base = self.choose(f.CONTEXT_LENGTH, default, said) or default
        found: int = self.choose(f.CONTEXT, base, f.CONTEXT_LENGTH.strip("-"))
        if towers(self.model):
            found = max(found, LEAST_VISION_CONTEXT)
        return min(found, self.model.max_context_tokens or UNTRAINED_CONTEXT)

    def slots(self) -> list[int]:
        """Numbers of slots in the order in which they are tried."""
        asked = self.choose(f.PARALLEL, PARALLEL.at(self.version), f"default of {self.version}")
        if self.geometry.recurrent:
            return [1]
        automatic = f.PARALLEL not in self.choose.given or not asked
        return [asked or PARALLEL.at(self.version), 1] if automatic else [asked]

    def cache_type(self, flash: bool) -> str:
        """The type of the caches; f16 without flash attention, whatever is asked for."""
        asked = str(self.choose(f.CACHE_TYPE, "f16"))
        return asked if flash else "f16"

    def flash(self) -> bool:
        """Whether flash attention is on."""
        usual = FLASH_SINCE.at(self.version) and self.model.model_type in FLASH_ATTENTION
        default = "on" if usual else "off"
        return str(self.choose(f.FLASH, default, f"default of {self.version}")) != "off"

    def settings(self, context: int, slots: int, flash: bool, batch: int) -> Settings:
        """llama.cpp's settings of the build that a release carries."""
        rules = rules_of(Version.parse(self.build))
        fmt = FORMATS[self.cache_type(flash)]
        return Settings(
            rules=rules,
            mla=0,
            slots=slots,
            unified=False,
            context=context * slots,
            context_given=True,
            trained=self.model.max_context_tokens or context,
            batch=batch,
            ubatch=batch,
            k=fmt,
            v=fmt,
            flash_attention=flash,
            full_windows=False,
            compressed_windows=False,
            offload_cache=True,
            snapshots=0,
            draft_layers=0,
        )

    def request(self, settings: Settings, buffers: Buffers, layers: int) -> Request:
        """What is laid out."""
        return Request(
            geometry=self.geometry,
            settings=settings,
            buffers=buffers,
            shape=shape_of(self.model),
            shares=(1.0,) * self.node.gpus,
            layers=layers,
        )

    def estimated(self) -> OllamaPlan:
        """The first time: an estimate finds slots and layers, llama.cpp allocates."""
        buffers, context, flash = self.buffers(), self.context(), self.flash()
        batch = min(self.choose(f.BATCH, BATCH), context)
        tried = self.slots()
        for slots in tried:
            estimate = self.expected(buffers, context, slots, batch, flash)
            if sum(estimate.layers) > self.geometry.layers:
                break
        settings = self.settings(context, slots, flash, batch)
        own = self.model.model_type in OWN_ENGINE
        if own:
            settings = self.engine_settings(settings)
        request = self.request(settings, buffers, sum(estimate.layers))
        if self.node.gpus > 1 and any(estimate.layers):
            request = replace(request, shares=tuple(map(float, estimate.layers)))
        layout = lay_out(request)
        weights = sum(buffers.parts.blocks) + buffers.output
        line = estimate_line(estimate, self.geometry.layers, weights, buffers.output)
        lines = measured_lines(layout) if own else cache_lines(layout.caches)
        found = self.told(layout, Era.ESTIMATE, (line, *lines))
        return replace(found, estimate=estimate)

    def expected(
        self, buffers: Buffers, context: int, slots: int, batch: int, flash: bool
    ) -> Estimate:
        """Ollama's expectation with some slots."""
        sizes = sizes_of(self.model, context * slots, batch)
        caches, graph = expect(
            self.model, self.geometry, buffers, sizes, slots, self.cache_type(flash)
        )
        return assign(
            caches,
            graph,
            buffers,
            (self.free,) * self.node.gpus,
            asked=self.choose(f.GPU_LAYERS),
            overhead=self.choose(f.OVERHEAD) or 0,
            metal=self.node.device.vendor.lower() == "apple",
        )

    def measured(self) -> OllamaPlan:
        """The second time: its own engine tries placements until one fits."""
        buffers, context, flash = self.buffers(), self.context(), self.flash()
        slots = self.slots()[-1]
        batch = min(self.choose(f.BATCH, BATCH), context)
        settings = self.engine_settings(self.settings(context, slots, flash, batch))
        layers = self.choose(f.GPU_LAYERS)
        request = self.request(settings, buffers, ALL if layers is None else layers)
        wish = self.wish(MINIMUM + (self.choose(f.OVERHEAD) or 0), placed=layers is not None)
        fitted = fit_request(self.model, request, wish)
        return self.told(fitted.layout, Era.MEASURE, measured_lines(fitted.layout))

    def engine_settings(self, base: Settings) -> EngineSettings:
        """The same settings for Ollama's own engine."""
        rules = replace(base.rules, windows=Windows.UBATCH, streams=False, padding=(32, 256))
        memory = MEMORY if self.model.model_type in LONG_MEMORY else 0
        values = {field.name: getattr(base, field.name) for field in fields(base)}
        return EngineSettings(**(values | {"rules": rules}), memory=memory)

    def wish(self, target: int, *, placed: bool) -> Wish:
        """What is left free; the context is never shortened."""
        return Wish(self.free, target, 0, context_given=True, placement_given=placed)

    def served(self) -> OllamaPlan:
        """The third time: llama-server with a context, slots and a batch."""
        context, slots = self.context(), self.slots()[-1]
        batch = self.choose(f.BATCH, batch_by_context(context), "default by the context")
        flags: dict[str, Any] = {
            "--ctx-size": context * slots,
            "--parallel": slots,
            "--batch-size": batch,
            "--ubatch-size": batch,
            "--flash-attn": self.asked.flags.get(f.FLASH, "auto"),
        }
        kind = FORMATS[self.cache_type(flash=True)]
        if kind.name != "f16":
            flags |= {"--cache-type-k": kind, "--cache-type-v": kind}
        for name, ours in (("--n-gpu-layers", f.GPU_LAYERS), ("--quantization", f.FILE_TYPE)):
            if self.choose(ours) is not None:
                flags[name] = self.choose(ours)
        inner = replace(self.asked, version=self.build, flags=flags)
        found = LlamaCpp().plan(self.model, self.node, inner)
        return _as_ollama(found, self.asked, self.choose, Era.SERVER, self.command())

    def command(self) -> str:
        """The environment and the options that were given, before ``ollama run``."""
        words = [
            f"{flag.strip('-')}={getattr(value, 'name', value)}"
            for flag, (value, source) in self.choose.launch.settings.items()
            if source == "flag" and flag != f.FILE_TYPE
        ]
        return " ".join([*words, "ollama run MODEL"])

    def told(self, layout: Layout, era: Era, prints: tuple[str, ...]) -> OllamaPlan:
        """The plan of a layout."""
        starts = layout.fullest.total <= self.node.memory_bytes
        return OllamaPlan(
            engine="ollama",
            version=None,
            model=self.model,
            node=self.node,
            asked=self.asked,
            launch=self.choose.launch,
            ledger=ledger(layout, self.node, self.asked, 0),
            pool=cell_pool(layout, self.asked),
            starts=starts,
            reason=None if starts else refusal(layout, self.node),
            prints=prints,
            command=self.command(),
            warnings=tuple(_warnings(layout)),
            layout=layout,
            era=era,
        )


def _as_ollama(found: LlamaPlan, asked: Asked, choose: Chosen, era: Era, said: str) -> OllamaPlan:
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    own = {"engine": "ollama", "asked": asked, "launch": choose.launch, "command": said}
    return OllamaPlan(**(values | own), era=era)


def _warnings(layout: Layout) -> Iterator[str]:
    blocks, depth = layout.placement.host.blocks, layout.request.geometry.layers
    if blocks:
        yield f"{blocks} of {depth} layers, with their caches, are in host memory."
    if layout.placement.host.output:
        yield "The output layer is in host memory."
