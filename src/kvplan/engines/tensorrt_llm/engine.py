"""TensorRT-LLM: ``free_gpu_memory_fraction`` of what is free after loading, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from kvplan.core.model import Model
from kvplan.engines.base import Asked, Change, Engine, EnginePlan, Node
from kvplan.engines.flags import FlagTable
from kvplan.engines.releases import release
from kvplan.engines.tensorrt_llm import report
from kvplan.engines.tensorrt_llm.blocks import allocated_bytes, window_pools
from kvplan.engines.tensorrt_llm.cells import cells
from kvplan.engines.tensorrt_llm.flags import FLAGS
from kvplan.engines.tensorrt_llm.memory import memory
from kvplan.engines.tensorrt_llm.plan import TensorRTPlan
from kvplan.engines.tensorrt_llm.settings import resolve


class TensorRTEngine(Engine):
    """TensorRT-LLM 0.5 to 1.2, built engines and the PyTorch backend."""

    name: ClassVar[str] = "tensorrt-llm"
    how: ClassVar[str] = "a fraction of what is free after loading, in blocks"
    versions: ClassVar[tuple[str, str]] = ("0.5", "1.2")
    flags: ClassVar[FlagTable] = FLAGS
    not_on: ClassVar[tuple[str, ...]] = ("Apple", "AMD", "Intel", "Google", "AWS", "Huawei")

    def plan(self, model: Model, node: Node, asked: Asked) -> TensorRTPlan:
        """The blocks of one rank.

        Raises:
            BadValue: an unknown release, a layout that does not divide, a cache without a pool.
        """
        known = release("TensorRT-LLM", asked.version, *self.versions)
        settings = resolve(model, node, asked, known.version)
        found = cells(model, settings)
        free = memory(model, node, asked, settings)
        states = found.state_bytes * settings.max_batch
        stated = asked.pool_bytes is not None
        share = asked.pool_bytes
        if share is None:
            share = int(settings.fraction * free.free) - states
        pools = window_pools(share, found, settings)
        num_bytes = allocated_bytes(pools, settings)
        reason = report.reason(free, settings, pools, states)
        term = report.cache_term(num_bytes, free, settings, stated=stated)
        return TensorRTPlan(
            engine=self.name,
            version=known.text,
            model=model,
            node=node,
            asked=asked,
            launch=settings.launch,
            ledger=report.ledger(node, free, settings, states, term),
            pool=report.pool(num_bytes, pools, settings),
            starts=reason is None,
            reason=reason,
            prints=tuple(report.log_lines(pools, num_bytes, settings)),
            command=report.command(model, settings, asked.flags),
            replicas=settings.replicas,
            warnings=(*known.warnings, *report.warnings(found, settings, model)),
            settings=settings,
            cells=found,
            pools=pools,
            weights=free.weights,
        )

    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """Fraction, format, batch, cards."""
        assert isinstance(plan, TensorRTPlan)
        settings, asked = plan.settings, plan.asked

        if asked.pool_bytes is None and settings.fraction < 0.95:
            note = "leaves less for graphs and later allocations"
            yield plan.with_flag("larger fraction", "--free-gpu-memory-fraction", 0.95, note)
        if settings.fmt.bits_per_element > 8.5:
            yield plan.with_flag("fp8 KV", "--kv-cache-dtype", "fp8")
        wanted = asked.concurrency or 1
        if settings.max_batch > max(wanted, 64):
            note = "smaller sampler and states; no more requests than that run at once"
            yield plan.with_flag("smaller batch", "--max-batch-size", max(wanted, 64), note)
        twice = replace(plan.node, gpus=2 * plan.node.gpus)
        flags = {flag: value for flag, value in asked.flags.items() if flag != "--tp-size"}
        wider = replace(asked, flags=flags)
        yield Change("twice the cards", f"--gpus {twice.gpus}", plan.model, twice, wider)
