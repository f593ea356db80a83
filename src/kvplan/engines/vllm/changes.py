"""The levers of vLLM: what to start differently, each asked again by the same rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kvplan.core.sharding import divides
from kvplan.engines.base import Change
from kvplan.engines.vllm.memory import claim_of
from kvplan.engines.vllm.plan import VllmPlan
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.specs import ChunkSpec, StateSpec, WindowSpec

HIGH_UTILIZATION = 0.95
SMALL_BATCH = 2048


def changes_of(plan: VllmPlan, rules: Rules) -> Iterator[Change]:
    """Those that apply, cheapest first."""
    yield from _pool(plan, rules)
    yield from _batch(plan, rules)
    yield from _length(plan)
    yield from _cards(plan)


def _pool(plan: VllmPlan, rules: Rules) -> Iterator[Change]:
    model, node, asked, settings = plan.model, plan.node, plan.asked, plan.settings
    claim = claim_of(node, plan.launch)
    if claim is not None and claim.requested > claim.free and claim.utilization > 0:
        share = claim.utilization
        changed = asked.with_flags(gpu_memory_utilization=share)
        flag = f"--gpu-memory-utilization {share:g}"
        yield Change("what is free", flag, model, node, changed, "beside the other processes")
    if settings.kv_dtype in ("auto", "float16", "bfloat16"):
        changed = asked.with_flags(kv_cache_dtype="fp8")
        note = "half the bytes of keys and values; states stay in their own type"
        yield Change("fp8 KV", "--kv-cache-dtype fp8", model, node, changed, note)
    if settings.utilization < HIGH_UTILIZATION and asked.pool_bytes is None:
        changed = asked.with_flags(gpu_memory_utilization=HIGH_UTILIZATION)
        flag = f"--gpu-memory-utilization {HIGH_UTILIZATION}"
        note = "leaves less for what comes on top: other processes, spikes of a batch"
        yield Change("more of the card", flag, model, node, changed, note)
    if not settings.eager and rules.graphs_inside and settings.device.platform != "cpu":
        changed = asked.with_flags(enforce_eager=True)
        note = "no CUDA graphs: their memory goes to the pool, and decoding gets slower"
        yield Change("no CUDA graphs", "--enforce-eager", model, node, changed, note)
    if any(isinstance(g.spec, StateSpec) and g.spec.mode != "none" for g in plan.groups):
        changed = asked.with_flags(no_enable_prefix_caching=True)
        flags = dict(changed.flags)
        flags.pop("--enable-prefix-caching", None)
        note = "one state a sequence instead of those kept for reuse; no prefix is reused"
        yield Change("no prefix caching", "--no-enable-prefix-caching", model, node,
                     replace(changed, flags=flags), note)  # fmt: skip


def _batch(plan: VllmPlan, rules: Rules) -> Iterator[Change]:
    model, node, asked, settings = plan.model, plan.node, plan.asked, plan.settings
    whole = not settings.in_parts and settings.max_len > SMALL_BATCH
    forbidden = asked.flags.get("--no-enable-chunked-prefill") or model.traits.multimodal
    if settings.batch > SMALL_BATCH and not (whole and forbidden):
        changed = asked.with_flags(max_num_batched_tokens=SMALL_BATCH)
        flag = f"--max-num-batched-tokens {SMALL_BATCH}"
        if whole:  # V0 starts with less than a prompt only where prompts are cut
            changed = changed.with_flags(enable_chunked_prefill=True)
            flag = f"--enable-chunked-prefill {flag}"
        note = "smaller activations; prompts take more steps"
        if any(isinstance(group.spec, WindowSpec | ChunkSpec) for group in plan.groups):
            note = "smaller activations and fewer blocks in flight in each window; " + note[21:]
        yield Change("smaller batches", flag, model, node, changed, note)
    fewer = plan.pool.num_blocks or 0
    stateful = any(isinstance(group.spec, StateSpec) for group in plan.groups)
    if stateful and rules.states_bound_sequences and 0 < fewer < settings.max_seqs:
        changed = asked.with_flags(max_num_seqs=fewer)
        note = "a state for each sequence that is captured in a graph"
        yield Change("fewer sequences", f"--max-num-seqs {fewer}", model, node, changed, note)
    if plan.starts and plan.capacity(asked.context).limited_by == "max_num_seqs":
        more = 2 * settings.max_seqs
        changed = asked.with_flags(max_num_seqs=more)
        note = "the pool would hold more than the scheduler runs"
        yield Change("more sequences", f"--max-num-seqs {more}", model, node, changed, note)


def _length(plan: VllmPlan) -> Iterator[Change]:
    model, node, asked = plan.model, plan.node, plan.asked
    if plan.max_len > asked.context:
        changed = asked.with_flags(max_model_len=asked.context)
        note = (
            "does not enlarge the pool: the start check asks for less, and the printed concurrency "
            "is for shorter requests"
        )
        flag = f"--max-model-len {asked.context}"
        yield Change("shorter maximum", flag, model, node, changed, note)
    half = asked.context // 2
    if half:
        note = "conversations that are cut or summarised at half the length"
        shorter = replace(asked, context=half)
        yield Change("half the context", f"--context {half}", model, node, shorter, note)


def _cards(plan: VllmPlan) -> Iterator[Change]:
    model, node, asked, layout = plan.model, plan.node, plan.asked, plan.settings.layout
    twice = 2 * layout.tp
    if divides(model, twice):
        more = replace(node, gpus=twice * layout.pp * layout.replicas)
        changed = asked.with_flags(tensor_parallel_size=twice)
        note = "weights are cut in half, and KV heads while there are enough of them"
        yield Change(
            "twice the cards", f"--tensor-parallel-size {twice}", model, more, changed, note
        )
    twice = 2 * layout.replicas
    more = replace(node, gpus=layout.tp * layout.pp * twice)
    note = "a second copy of the model: twice of everything"
    yield Change("twice the copies", f"--data-parallel-size {twice}", model, more,
                 asked.with_flags(data_parallel_size=twice), note)  # fmt: skip
