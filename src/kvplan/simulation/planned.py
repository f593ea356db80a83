"""An engine's plan as a server of the simulator: the pool, the limits and the rules of its start.

A plan says what one copy holds; a server decides with it. Each engine has one function here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kvplan.core.errors import BadQuestion, BadValue
from kvplan.core.tier import Tier
from kvplan.engines.base import EnginePlan
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.engines.sglang.plan import SGLangPlan
from kvplan.engines.tensorrt_llm.plan import TensorRTPlan
from kvplan.engines.vllm import specs
from kvplan.engines.vllm.plan import VllmPlan
from kvplan.engines.vllm.rules import NEWEST
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings, version_rules
from kvplan.simulation.servers.base import Server
from kvplan.simulation.servers.contiguous import RESERVE, ContiguousServer
from kvplan.simulation.servers.host import HostTier
from kvplan.simulation.servers.llamacpp import LlamaServer, LlamaSettings
from kvplan.simulation.servers.sglang import SglangServer, SglangSettings
from kvplan.simulation.servers.tensorrt import TensorRTServer
from kvplan.simulation.servers.vllm import VllmServer

POLICIES: Final = {
    "vllm": ("fcfs", "priority", "shortest"),
    "sglang": ("fcfs", "lpm", "lof", "shortest", "priority"),
}
CACHES: Final = ("paged", "contiguous")
PREEMPTIONS: Final = ("recompute", "swap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is asked of a server beside its plan.

    ``cache`` contiguous runs the same pool without paging, each request in one run of ``reserve``.
    ``link_bytes_per_s`` is one card's way to its host's memory, None where it is not known.
    """

    policy: str = "fcfs"
    preemption: str = "recompute"
    cache: str = "paged"
    reserve: str = "max"
    watermark: float = 0.0
    link_bytes_per_s: int | None = None


class Planned(NamedTuple):
    """How servers of a plan are made, and what of the plan they leave out.

    ``ahead`` where a step is decided as the one before it begins, so that who comes meanwhile is
    seen a step later: vLLM's async scheduling (v1/engine/core.py, step_with_batch_queue, 0.32.0),
    SGLang's overlap schedule (managers/scheduler.py, event_loop_overlap, 0.5.12), TensorRT-LLM's
    overlap scheduler (_torch/pyexecutor/py_executor.py, _executor_loop_overlap, 1.0).
    """

    make: Callable[[], Server]
    warnings: tuple[str, ...] = ()
    paged: PagedSettings | None = None  # where vLLM's rules alone decide
    ahead: bool = False


def planned(plan: EnginePlan, rules: Rules) -> Planned:
    """Servers of a plan.

    Raises:
        BadQuestion: the plan does not start, or its engine has no such rule.
    """
    if rules.reserve != "max" and rules.cache != "contiguous":
        raise BadValue(
            f"--reserve {rules.reserve[:20]} is of a cache without pages.",
            f"Pass --cache contiguous; known are {', '.join(RESERVE)}.",
        )
    if not plan.starts:
        raise BadQuestion(plan.reason or "The engine does not start with this plan.")
    _check(plan, rules)
    if rules.cache == "contiguous":
        return _contiguous(plan, rules)
    for kind, make in _MAKERS.items():
        if isinstance(plan, kind):
            return make(plan, rules)
    found = _contiguous(plan, rules)
    said = f"each request has one run of {plan.asked.context:,} tokens (--context)."
    said = f"{plan.engine} does not page its cache: {said}"
    return found._replace(warnings=(said, *found.warnings))


def _check(plan: EnginePlan, rules: Rules) -> None:
    """Rules that the engine has."""
    known = POLICIES.get(plan.engine, ("fcfs",))
    if rules.policy not in known:
        raise BadValue(
            f"{plan.engine} has no policy {rules.policy[:40]!r}.",
            f"Known: {', '.join(known)}.",
        )
    if rules.preemption not in PREEMPTIONS or rules.cache not in CACHES:
        wrong = rules.preemption if rules.preemption not in PREEMPTIONS else rules.cache
        known = PREEMPTIONS if rules.preemption not in PREEMPTIONS else CACHES
        raise BadValue(f"There is no {wrong[:40]!r}.", f"Known: {', '.join(known)}.")
    if rules.preemption == "swap" and plan.engine != "vllm":
        raise BadValue(f"{plan.engine} does not swap.", "It is a rule of vllm.")
    if rules.preemption == "swap" and rules.link_bytes_per_s is None:
        raise BadValue("The link to host memory is not known.", "Pass --host-bandwidth 25GB/s.")


# vLLM


def _vllm(plan: VllmPlan, rules: Rules) -> Planned:
    settings, told = paged_settings(plan, rules)
    tier, said = _tier(plan, rules)
    if tier is not None and len(settings.groups) > 1:
        tier, said = (
            None,
            ("Host memory is left out: the model's layers are of several kinds.",),
        )
    block, link = plan.bytes_per_block, float(rules.link_bytes_per_s or 0)

    def make() -> Server:
        return VllmServer(
            settings=settings,
            host=_host(tier, rules),
            block_bytes=block,
            link_bytes_per_s=link,
        )

    plain = settings if tier is None and rules.preemption == "recompute" else None
    return Planned(make, told + said, plain, plan.settings.asynchronous)


def paged_settings(plan: VllmPlan, rules: Rules) -> tuple[PagedSettings, tuple[str, ...]]:
    """The settings of vLLM as its scheduler sees them, and what they leave out of the plan."""
    settings, told = plan.settings, []
    groups = []
    for group in plan.groups:
        found = _group(group.spec, plan)
        if found is None:
            told.append(f"Cache of kind {group.spec.kind.replace('_', ' ')} is left out.")
        else:
            groups.append(found)
    if not groups:
        raise BadQuestion(f"{plan.model.name} keeps no cache by tokens: nothing to simulate.")
    if settings.draft is not None:
        told.append("Draft tokens are left out: each step yields one token.")
    chunked = not settings.flags.get("--no-enable-chunked-prefill", False)
    version: dict[str, Any] = dict(version_rules(plan.version or NEWEST))
    made = PagedSettings(
        num_blocks=plan.pool.num_blocks or 1,
        groups=tuple(groups),
        max_num_seqs=settings.max_seqs,
        max_num_batched_tokens=settings.batch,
        max_model_len=plan.max_len,
        prefix_caching=settings.prefix_caching,
        policy=rules.policy,  # type: ignore[arg-type]
        preemption=rules.preemption,  # type: ignore[arg-type]
        chunked_prefill=chunked,
        watermark=rules.watermark,
        concurrent_batches=max(1, settings.in_flight // settings.batch),
        **version,
    )
    return made, tuple(told)


def _group(spec: specs.Spec, plan: VllmPlan) -> CacheGroup | None:
    """A group as the scheduler sees it; None of one that it does not follow by tokens."""
    block = spec.block_size * (plan.request.dcp if spec.sharded else 1)
    if isinstance(spec, specs.WindowSpec):
        return CacheGroup(kind="window", block_size=block, window=spec.size)
    if isinstance(spec, specs.ChunkSpec):
        return CacheGroup(kind="chunked", block_size=block, window=spec.size)
    if isinstance(spec, specs.StateSpec):
        return CacheGroup(kind="state", block_size=block, checkpoint=spec.checkpoints > 0)
    if isinstance(spec, specs.FullSpec):
        return CacheGroup(kind="full", block_size=block)
    return None


# The others


def _sglang(plan: SGLangPlan, rules: Rules) -> Planned:
    settings = plan.settings
    tier, said = _tier(plan, rules)
    told = list(said)
    if plan.cells.window_tokens:
        told.append("Sliding windows are counted as full attention: hits and room are less.")
    if plan.cells.slot:
        told.append("Recurrent states limit how many run, and no prefix is taken from them.")
    flags = plan.asked.flags
    own = SglangSettings(
        max_running=plan.running.requests,
        chunk_tokens=settings.chunk if settings.chunk > 0 else None,
        prefill_tokens=settings.prefill,
        mixed_chunk=settings.mixes,
        conservativeness=flags.get("--schedule-conservativeness") or 1.0,
        recv_interval=flags.get("--scheduler-recv-interval") or 1,
        policy=rules.policy,
    )

    def make() -> Server:
        return SglangServer(
            tokens=plan.pools.max_total_tokens,
            page=settings.page,
            reuse=settings.radix and not plan.cells.slot,
            host=_host(tier, rules),
            settings=own,
        )

    return Planned(make, tuple(told), ahead=settings.overlap)


def _llama(plan: LlamaPlan, rules: Rules) -> Planned:
    settings = plan.settings
    tier = next(iter(plan.tiers), None) if rules.link_bytes_per_s else None
    own = LlamaSettings(
        cells=settings.cells * settings.streams,
        slots=settings.slots,
        unified=settings.streams == 1,
        batch_tokens=settings.batch,
        host_tokens=tier.tokens if tier else 0,
        token_bytes=tier.rank_block_bytes // tier.block_tokens if tier else 0,
        link_bytes_per_s=float(rules.link_bytes_per_s or 0),
    )
    told = ("A step is timed as one, however many --ubatch-size make it.",)
    return Planned(lambda: LlamaServer(settings=own), told)


def _tensorrt(plan: TensorRTPlan, rules: Rules) -> Planned:
    settings = plan.settings
    pool, flags = plan.pools[-1], plan.asked.flags
    told = () if len(plan.pools) == 1 else ("Windows are counted as full attention.",)

    def make() -> Server:
        return TensorRTServer(
            tokens=pool.blocks * settings.block,
            page=settings.block,
            max_len=settings.max_seq_len,
            max_batch=settings.max_batch,
            batched_tokens=settings.max_num_tokens,
            chunked=bool(flags.get("--enable-chunked-prefill")),
            wait_steps=flags.get("--batch-wait-timeout-iters") or 0,
            wait_share=flags.get("--batch-wait-max-tokens-ratio") or 0.0,
        )

    ahead = settings.backend == "pytorch" and not flags.get("--disable-overlap-scheduler")
    return Planned(make, told, ahead=ahead)


def _contiguous(plan: EnginePlan, rules: Rules) -> Planned:
    """The pool as one stretch of as many tokens as its bytes are of sequences as asked."""
    context = plan.asked.context
    tokens = plan.pool.num_bytes * context // max(plan.sequence_bytes(context), 1)

    def make() -> Server:
        return ContiguousServer(
            tokens=max(tokens, 1),
            max_len=context,
            max_running=1 << 16,
            batched_tokens=max(context, 8192),
            reserve=rules.reserve,
        )

    return Planned(make)


_MAKERS: Final[dict[type[EnginePlan], Callable[[Any, Rules], Planned]]] = {
    VllmPlan: _vllm,
    SGLangPlan: _sglang,
    LlamaPlan: _llama,
    TensorRTPlan: _tensorrt,
}


def _tier(plan: EnginePlan, rules: Rules) -> tuple[Tier | None, tuple[str, ...]]:
    """The host memory that a flag asks for, if the link to it is known."""
    asked = next((tier for tier in plan.tiers if tier.asked and tier.tokens), None)
    if asked is not None and rules.link_bytes_per_s is None:
        return None, ("Host memory is left out: pass --host-bandwidth for the link to it.",)
    return asked, ()


def _host(tier: Tier | None, rules: Rules) -> HostTier | None:
    if tier is None or rules.link_bytes_per_s is None:
        return None
    return HostTier(
        capacity=tier.tokens,
        token_bytes=tier.rank_block_bytes / tier.block_tokens,
        link_bytes_per_s=float(rules.link_bytes_per_s),
    )
