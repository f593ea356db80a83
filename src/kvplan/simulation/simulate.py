"""``simulate``: what traffic does to a plan over time, as the engine's own scheduler decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count
from kvplan.engines.base import EnginePlan
from kvplan.engines.names import flags_of
from kvplan.planning.answer import Answer
from kvplan.planning.joined import join
from kvplan.planning.question import Question, ask
from kvplan.readers.open_model import ModelSource
from kvplan.simulation.copies import Copies, copies_of
from kvplan.simulation.needed import check_installed
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.planned import Rules
from kvplan.simulation.report import LEVEL, averaged, figures, intervals
from kvplan.simulation.step_time import StepTime, step_time
from kvplan.simulation.traffic import Traffic
from kvplan.simulation.workload import Workload, check_read_again

MOST_SEEDS = 1000
LARGEST_SEED = (1 << 32) - 1
Progress = Callable[[int, int], None]  # requests that have ended, of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One seed's traffic and what became of it; ``extras`` are figures of its engine alone."""

    seed: int
    traffic: Traffic
    outcome: Outcome
    extras: dict[str, float]
    took_s: float

    def figures(self) -> dict[str, Any]:
        """The contract's figures of this run."""
        return figures(self.outcome, self.traffic)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateAnswer(Answer):
    """A plan, the traffic, and one run a seed."""

    verb: ClassVar[str] = "simulate"

    question: Question
    plan: EnginePlan
    copies: Copies
    time: StepTime
    runs: tuple[Run, ...]

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was assumed on the way."""
        traffic = self.runs[0].traffic
        own = self.question.warnings + self.plan.warnings + self.copies.warnings + self._refused
        if not traffic.num_skipped:
            return own + tuple(traffic.notes)
        why = "; ".join(traffic.skipped[:3])
        said = f"{traffic.num_skipped:,} rows of {traffic.source} were not taken: {why}"
        return (*own, *traffic.notes, said)

    @property
    def met(self) -> bool:
        """Whether any request was answered."""
        import numpy as np

        return any(bool((~np.isnan(run.outcome.finished_s)).any()) for run in self.runs)

    @property
    def _refused(self) -> tuple[str, ...]:
        """How many requests can never run, and how long they are."""
        run = self.runs[0]
        refused = run.outcome.rejected
        if not refused.any():
            return ()
        lengths = (run.traffic.prompt_tokens + run.traffic.output_tokens)[refused]
        least, most = int(lengths.min()), int(lengths.max())
        tokens = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        said = (
            f"{int(refused.sum()):,} of {len(refused):,} requests are refused: of {tokens} tokens, "
            "they are longer than the engine's limit or its empty pool (kvplan fit says which)."
        )
        return (said,)

    def figures(self) -> dict[str, Any]:
        """The contract's figures, means where there are several seeds."""
        found = averaged([run.figures() for run in self.runs])
        took = sum(run.took_s for run in self.runs)
        sent = sum(len(run.traffic) for run in self.runs)
        return found | {"simulated_requests_per_s": sent / took if took > 0 else 0.0}

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``simulate``."""
        q, plan, traffic = self.question, self.plan, self.runs[0].traffic
        per_seed = [run.figures() for run in self.runs]
        return {
            "model": q.model.name,
            "device": {"name": q.node.device.name, "count": q.node.gpus},
            "engine": {"name": plan.engine, "version": plan.version},
            "copies": self.copies.to_dict(),
            "pool": {
                "blocks": self.runs[0].outcome.num_blocks,
                "block_size": plan.pool.block_size,
            },
            "time": {"source": self.time.cost.source, "error": self.time.error},
            "traffic": {
                "source": traffic.source,
                "skipped": traffic.num_skipped,
                "max_in_flight": traffic.max_in_flight,
                "arrives_within_s": _arrives_within_s(self.runs),
            },
            **self.figures(),
            "confidence": {
                "seeds": [run.seed for run in self.runs],
                "level": LEVEL,
                "intervals": intervals(per_seed),
            },
            "extras": averaged([run.extras for run in self.runs]),
        }


def _arrives_within_s(runs: Sequence[Run]) -> float | None:
    """From the beginning to the last that was sent, the mean over seeds; None where none was."""
    import numpy as np

    sent = [run.outcome.arrived_s[~np.isnan(run.outcome.arrived_s)] for run in runs]
    return fmean(float(one.max()) for one in sent) if all(map(len, sent)) else None


def simulate(
    model: ModelSource | None = None,
    *,
    trace: Any = None,
    requests: int | None = None,
    rate: float | None = None,
    concurrency: int | None = None,
    prompt: str | int = 1024,
    output: str | int | None = None,
    arrivals: str = "poisson",
    cv: float = 1.0,
    shared_prefix: int | str = 0,
    prefixes: int = 1,
    turns: int = 1,
    think: str | float = 0,
    columns: str | Mapping[str, str] | None = None,
    recorded: bool | None = None,
    tokenizer: str | None = None,
    workload: str | None = None,
    replicas: int = 1,
    router: str = "round-robin",
    prefill_replicas: int = 0,
    link: int | str | None = None,
    policy: str = "fcfs",
    preemption: str = "recompute",
    cache: str = "paged",
    reserve: str = "max",
    watermark: float = 0.0,
    seed: int = 0,
    seeds: int = 1,
    time: str = "estimate",
    step_by_step: bool = False,
    progress: Progress | None = None,
    from_: str | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    engine: str | None = None,
    engine_version: str | None = None,
    context: int | str | None = None,
    weights_bytes: int | str | None = None,
    gpu_memory: int | str | None = None,
    free_memory: int | str | None = None,
    bandwidth: int | str | None = None,
    host_bandwidth: int | str | None = None,
    kv_pool: int | str | None = None,
    set: Mapping[str, Any] | None = None,
    encoder_tokens: int | str | None = None,
    assume: str = "",
    offline: bool = False,
    calibration: str | Path | None = None,
    **flags: Any,
) -> SimulateAnswer:
    """What traffic does to a model on a card: latency, hits, preemptions, as the engine decides.

    Args:
        model: a name, a path, ``-`` or a parsed config; the command line's where ``from_`` has one.
        trace: a file of requests, or rows of it, in place of drawn ones.
        requests: how many; default: all of a trace, 1,000 of an open loop, 10 for each of a closed.
        rate: requests a second; of a trace, to which its pauses are stretched.
        concurrency: requests that the client keeps open, in place of a rate.
        prompt: lengths of prompts, as ``800``, ``uniform:800-1000``, ``lognormal:1000,0.8``.
        output: lengths of answers; default 256.
        arrivals: ``poisson``, ``gamma`` with ``cv``, or ``constant``.
        cv: the deviation of a gamma process's pauses over their mean.
        shared_prefix: tokens with which all prompts of a kind begin.
        prefixes: how many kinds there are.
        turns: of a conversation; ``prompt`` is then what a user says at each.
        think: seconds between an answer and the next turn.
        columns: which column of a trace is what: ``arrival=ts:ms,prompt=in``.
        recorded: True takes a trace's arrivals as they are where turns would wait for answers.
        tokenizer: for traces of text.
        workload: which one of a summary of several.
        replicas: copies of the whole start, each with its cards.
        router: ``round-robin``, ``least-loaded`` or ``prefix-aware``.
        prefill_replicas: copies beside them that compute prompts alone and hand the cache over.
        link: what a cache is handed over with, as ``50GB/s``; default: the card's host link.
        policy: who is admitted first: ``fcfs``, ``priority``, ``shortest``; an engine's own.
        preemption: ``recompute``, or ``swap`` to host memory.
        cache: ``paged``, or ``contiguous``: the same pool without paging.
        reserve: what a contiguous run reserves: ``max``, ``power`` of two, or ``oracle``.
        watermark: share of the blocks that admission leaves free.
        seed: of all draws.
        seeds: runs, each with the next seed.
        time: ``estimate``, ``bound``, ``constant:10ms``, or a table of measured steps.
        step_by_step: never takes steps together; the times are the same.
        progress: called with requests that have ended, and how many there are.
        from_: an engine's own command line.
        gpu: a device by any name.
        gpus: cards, as tensor parallelism.
        engine: default: vllm.
        engine_version: default: the newest that is modelled.
        context: the length that a plan without paging is made for.
        weights_bytes: what the weights take.
        gpu_memory: one card's memory.
        free_memory: what one card has free at the start.
        bandwidth: one card's memory bandwidth.
        host_bandwidth: of the link to host memory.
        kv_pool: one card's pool as a log states it.
        set: config keys to replace.
        encoder_tokens: the encoder's length.
        assume: ``full`` sizes an unknown type as full attention.
        offline: never ask the hub.
        calibration: a folder of ``measure``: steps take what was measured there.
        flags: the engine's own flags with underscores.

    Raises:
        BadQuestion: a value that cannot be read, a plan that does not start, traffic that is none.
        SourceUnreachable: a file or the hub does not answer.
    """
    check_installed()
    asked = join(
        from_,
        model=model,
        engine=engine,
        engine_version=engine_version,
        gpus=gpus,
        set=set,
        flags=flags_of(flags),
    )
    question = ask(
        asked.model,
        gpu=gpu,
        gpus=asked.gpus,
        engine=asked.engine,
        engine_version=asked.engine_version,
        context=context,
        weights_bytes=weights_bytes,
        gpu_memory=gpu_memory,
        free_memory=free_memory,
        bandwidth=bandwidth,
        host_bandwidth=host_bandwidth,
        kv_pool=kv_pool,
        set=asked.set,
        encoder_tokens=encoder_tokens,
        assume=assume,
        offline=offline,
        calibration=calibration,
        flags=asked.flags,
    )
    rules = Rules(
        policy=policy,
        preemption=preemption,
        cache=cache,
        reserve=reserve,
        watermark=watermark,
        link_bytes_per_s=question.host_link.bytes_per_s if question.host_link else None,
    )
    work = Workload(
        trace=trace,
        requests=requests,
        rate=rate,
        concurrency=concurrency,
        prompt=prompt,
        output=output,
        arrivals=arrivals,
        cv=cv,
        shared_prefix=shared_prefix,
        prefixes=prefixes,
        turns=turns,
        think=think,
        columns=columns,
        recorded=recorded,
        tokenizer=tokenizer,
        workload=workload,
        offline=offline,
    )
    plan = question.engine.plan(question.model, question.node, question.asked)
    copies = copies_of(
        plan,
        rules,
        replicas=replicas,
        router=router,
        prefill=prefill_replicas,
        link=link,
    )
    return SimulateAnswer(
        question=replace(question, warnings=asked.warnings + question.warnings),
        plan=plan,
        copies=copies,
        time=(timed := step_time(time, plan, question.bandwidth_bytes_per_s)),
        runs=_runs(copies, timed, work, (seed, seeds), step_by_step, progress),
    )


def _runs(
    copies: Copies,
    timed: StepTime,
    work: Workload,
    seeds: tuple[int, int],
    step_by_step: bool,
    progress: Progress | None,
) -> tuple[Run, ...]:
    """A run a seed; of a trace there is but one."""
    first, count = seeds
    number = parse_count(count, "--seeds", MOST_SEEDS)
    if not isinstance(first, int) or not 0 <= first <= LARGEST_SEED:
        raise BadValue(
            f"--seed {str(first)[:40]} is not a whole number from 0 to {LARGEST_SEED:,}."
        )
    if number > 1:
        check_read_again(work.trace)
    done, found = 0, []
    for seed in range(first, first + number):
        traffic = work.traffic(seed)
        if number > 1 and not traffic.is_drawn:
            raise BadValue("A trace is the same for every seed.", "Leave --seeds out.")
        total = len(traffic) * number

        def told(ended: int, before: int = done, total: int = total) -> None:
            if progress is not None:
                progress(before + ended, total)

        began = time.perf_counter()
        outcome, extras = copies.run(traffic, timed, told, step_by_step)
        took = time.perf_counter() - began
        done += len(traffic)
        told(len(traffic), done - len(traffic))
        found.append(Run(seed=seed, traffic=traffic, outcome=outcome, extras=extras, took_s=took))
    return tuple(found)
