"""Where every GiB of a rank goes under vLLM, before the pool and beside it.

total = context + requested + left free
requested = weights + adapters + draft + activation + not torch's (+ graphs since 0.20) + pool
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvplan.core.launch import Launch
from kvplan.core.ledger import Ledger, Term
from kvplan.core.model import Model
from kvplan.core.units import GIB, format_bytes
from kvplan.core.version import Version
from kvplan.engines.base import Node
from kvplan.engines.vllm.memory.activation import Activation, activation_of
from kvplan.engines.vllm.memory.batch import Batch, batch_of, runner_two, setting
from kvplan.engines.vllm.memory.encoder import encoder_of
from kvplan.engines.vllm.memory.extras import adapters, draft_weights
from kvplan.engines.vllm.memory.graphs import graphs_of
from kvplan.engines.vllm.memory.loaded import OnRank, on_rank
from kvplan.engines.vllm.memory.machine import (
    CONTEXT,
    CONTEXT_OF_GROUP,
    Machine,
    machine_of,
)
from kvplan.engines.vllm.memory.outside_torch import outside_torch
from kvplan.engines.vllm.memory.sampler import sampler_of
from kvplan.engines.weights import OUTSIDE_LAYERS, Given, Layout, RankWeights

# utils/mem_utils.py: from here on what is reserved and free counts too (total_consumed).
STRANDED_COUNTS_SINCE = Version((0, 26))
# What the host takes while the model loads (pages of the files, the process itself) counts as used
# by the card: 1 to 5 GiB in twelve starts on GB10, a third of the models kept aside.
UNIFIED: Final = 2 * GIB
UNIFIED_ERROR: Final = 2 * GIB
UNIFIED_SAID: Final = "what the host takes of the shared memory meanwhile, measured on GB10"
DEFAULT_UTILIZATION: Final = 0.92


def ledger(
    model: Model,
    node: Node,
    launch: Launch,
    version: Version,
    *,
    weights_bytes: int | None = None,
    pool_bytes: int | None = None,
) -> Ledger:
    """The terms of the fullest rank; the last is the pool, negative where nothing is left.

    Args:
        model: what is served.
        node: the cards.
        launch: flags, given and defaulted (``--max-num-seqs``, ``--tensor-parallel-size``, …).
        version: vLLM's.
        weights_bytes: the whole model's weights, where they are given.
        pool_bytes: the pool, where a log states it: what is unexplained is then a term.
    """
    machine = machine_of(node)
    run = _Run.of(model, launch, version, machine)
    utilization = float(setting(launch, "--gpu-memory-utilization", DEFAULT_UTILIZATION))
    requested = machine.requested(utilization)
    terms = [*_inside(model, launch, version, machine, run, weights_bytes)]
    pool = requested - sum(term.num_bytes for term in terms if term.inside_budget)
    fixed = setting(launch, "--kv-cache-memory-bytes", None)
    source = f"{format_bytes(requested)} requested ({utilization:g} of the total) less the above"
    given = pool_bytes if pool_bytes is not None else fixed
    if given is not None:
        terms.append(_unexplained(pool - given))
        pool, source = given, "flag"
    error = 0 if given is not None else _error(terms, machine, utilization)
    context = CONTEXT_OF_GROUP if run.batch.tp > 1 and machine.fuses_reductions else CONTEXT
    context = 0 if machine.unified else context
    terms += node.others
    beside = (term for term in terms if not (term.inside_budget or term.on_host))
    outside = sum(term.num_bytes for term in beside)
    terms.append(Term(name="context", num_bytes=context, source="CUDA context, measured on H100",
                      error_bytes=context // 4, inside_budget=False))  # fmt: skip
    terms.append(
        Term(
            name="left_free",
            num_bytes=machine.total - requested - context - outside,
            source=f"{machine.source}: {format_bytes(machine.total)}, less all else",
            error_bytes=machine.total_error,
            inside_budget=False,
        )
    )
    terms.append(Term(name="kv_pool", num_bytes=pool, source=source, error_bytes=error))
    return Ledger(tuple(terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What the profile run is: its batch, the runner, whether it samples and encodes."""

    batch: Batch
    second: bool
    pooling: bool
    towers: bool

    @classmethod
    def of(cls, model: Model, launch: Launch, version: Version, machine: Machine) -> _Run:
        batch = batch_of(model, launch)
        pooling = embeds(model, launch)
        second = runner_two(model, version, pooling, batch.experts is not None)
        limits = setting(launch, "--limit-mm-per-prompt", {})
        off = bool(limits) and not any(limits.values())
        towers = not off and not setting(launch, "--language-model-only", False)
        on_gpu = machine.vendor != "CPU"
        return cls(batch=batch, second=second and on_gpu, pooling=pooling, towers=towers)


def rank_weights_of(
    model: Model, node: Node, launch: Launch, version: Version, weights_bytes: int | None
) -> RankWeights | None:
    """The tensors of the fullest rank, None where nothing is known of them."""
    machine = machine_of(node)
    run = _Run.of(model, launch, version, machine)
    found = _loaded(model, launch, machine, run, weights_bytes)
    return None if found is None else found.rank


def offloaded(rank: RankWeights, asked: int) -> int:
    """Bytes of a rank's layers that are kept in host memory; tables and heads stay.

    vllm/model_executor/offloader/uva.py (0.32.0): layer by layer until the size is reached.
    """
    inside = tuple(t for t in rank.tensors if t.role not in OUTSIDE_LAYERS)
    layers = rank.storage.num_bytes(inside) if inside else rank.num_bytes
    return min(asked, layers, rank.num_bytes)


class Claim(NamedTuple):
    """What a start asks of a card before it loads anything, and what it finds free."""

    requested: int
    free: int
    total: int

    @property
    def utilization(self) -> float:
        """The largest share, in hundredths, that is free."""
        return math.floor(100 * self.free / self.total) / 100


def total_of(node: Node) -> int:
    """One card's memory as torch sees it."""
    return machine_of(node).total


def claim_of(node: Node, launch: Launch) -> Claim | None:
    """The claim, where other processes hold a part of the card; None where nothing is said."""
    if node.free_bytes is None:
        return None
    machine = machine_of(node)
    context = 0 if machine.unified or machine.vendor == "CPU" else CONTEXT
    utilization = float(setting(launch, "--gpu-memory-utilization", DEFAULT_UTILIZATION))
    free = min(node.free_bytes, machine.total) - context
    return Claim(machine.requested(utilization), max(0, free), machine.total)


def embeds(model: Model, launch: Launch) -> bool:
    """Whether the model embeds or ranks and samples nothing: by flag, else by its name.

    vLLM sees it by the modules of sentence-transformers in the folder (config/model.py, 0.32.0).
    """
    runner = setting(launch, "--runner", "auto")
    if runner != "auto":
        return bool(runner == "pooling")
    name = model.name.lower()
    return any(word in name for word in ("embedding", "reranker", "reward"))


def _inside(
    model: Model,
    launch: Launch,
    version: Version,
    machine: Machine,
    run: _Run,
    weights_bytes: int | None,
) -> list[Term]:
    """The terms before the pool, and graphs whether they count or not."""
    batch = run.batch
    replicas = int(setting(launch, "--data-parallel-size", 1))
    found = _loaded(model, launch, machine, run, weights_bytes)
    if found is None:
        return [_unknown_weights()]
    rank, model_takes = found
    away = offloaded(rank, int(setting(launch, "--cpu-offload-gb", 0)))
    kept = model_takes.num_bytes - away
    terms = [_term("weights", kept, model_takes.error_bytes, model_takes.source)]
    if away:
        said = "--cpu-offload-gb: read over the link at every step"
        terms.append(Term(name="offloaded_weights", num_bytes=away, source=said,
                          inside_budget=False, on_host=True))  # fmt: skip
    for name, extra in (
        ("lora", adapters(rank, launch)),
        ("draft", draft_weights(model, rank, launch)),
    ):
        if extra is not None:
            terms.append(_term(name, extra.num_bytes, extra.error, extra.source))
    terms += _profile(model, version, machine, run)
    eager = bool(setting(launch, "--enforce-eager", False))
    other = outside_torch(batch, machine, version, replicas=replicas, eager=eager)
    terms.append(_term("non_torch", other.num_bytes, other.error, other.source))
    if version >= STRANDED_COUNTS_SINCE and model_takes.stranded:
        half = model_takes.stranded // 2
        terms.append(_term("fragmentation", half, half, "rests of the allocator's segments"))
    if machine.unified:
        terms.append(_term("unified_memory", UNIFIED, UNIFIED_ERROR, UNIFIED_SAID))
    if not eager:
        terms.append(_graphs(model, version, machine, run))
    return terms


def _loaded(
    model: Model, launch: Launch, machine: Machine, run: _Run, weights_bytes: int | None
) -> OnRank | None:
    """The fullest rank's tensors, and what they take once loaded."""
    batch = run.batch
    whole = bool(setting(launch, "--enable-expert-parallel", False))
    ranks = batch.tp * int(setting(launch, "--data-parallel-size", 1))
    return on_rank(
        model,
        Layout(tp=batch.tp, pp=batch.pp, expert_ranks=ranks if whole else 0),
        Given(
            dtype=str(setting(launch, "--dtype", "")),
            quantization=str(setting(launch, "--quantization", "")),
            total_bytes=weights_bytes,
            without_head=run.pooling,
            without_towers=not run.towers,
        ),
        machine,
    )


def _graphs(model: Model, version: Version, machine: Machine, run: _Run) -> Term:
    """Graphs, inside the budget or on top of it."""
    found = graphs_of(
        version,
        layers=max(1, len(model.blocks) // run.batch.pp),
        sequences=run.batch.sequences,
        second_runner=run.second,
        blackwell=machine.blackwell,
    )
    return Term(
        name="cuda_graphs",
        num_bytes=found.num_bytes,
        source=found.source,
        error_bytes=found.error,
        inside_budget=found.inside,
    )


def _profile(model: Model, version: Version, machine: Machine, run: _Run) -> list[Term]:
    """The peak of the profile run, and what the second runner keeps for penalties.

    Of several stages the last one samples; it is the one that decides.
    """
    batch = run.batch
    sampler = None if run.pooling else sampler_of(batch, version, run.second)
    encoder = encoder_of(model, batch, version, second_runner=run.second, towers=run.towers)
    found: Activation = activation_of(batch, version, machine, sampler, encoder)
    terms = [_term("activation_peak", found.peak, found.error, found.source)]
    if sampler is not None and sampler.kept:
        said = f"counts of {batch.vocabulary:,} tokens for {batch.sequences:,} sequences"
        terms.append(_term("sampler_state", sampler.kept, sampler.kept // 10, said))
    return terms


def _term(name: str, num_bytes: int, error: int, source: str) -> Term:
    return Term(name=name, num_bytes=num_bytes, source=source, error_bytes=error)


def _unknown_weights() -> Term:
    return _term("weights", 0, 0, "unknown: pass --weights-bytes")


def _unexplained(num_bytes: int) -> Term:
    return _term("unexplained", num_bytes, 0, "what the stated pool leaves of the prediction")


def _error(terms: list[Term], machine: Machine, utilization: float) -> int:
    """Errors that do not depend on each other add as squares."""
    squares = sum(term.error_bytes**2 for term in terms if term.inside_budget)
    return round(math.sqrt(squares + (machine.total_error * utilization) ** 2))
