"""Thousands of cases at once: the package's own arithmetic over arrays."""

from __future__ import annotations

from math import ceil, inf
from types import SimpleNamespace
from typing import Any

import numpy as np

from kvplan.planning.speed import loop, serving, terms
from kvplan.planning.speed.batching import budget_of, is_apart
from kvplan.planning.speed.calibration import capped, era_of, family_of
from kvplan.planning.speed.loop import Prompting
from kvplan.planning.speed.rates import SHARES
from kvplan.planning.speed.serving import filled_up
from kvplan.planning.speed.steps import DECODING
from tools.speed_bench import requests_of, sizes_of
from tools.speed_cases import MOST_RUNNING, Case
from tools.speed_rows import is_validation

# A namespace of columns: to the package's arithmetic it is an ``Ideal``, or ``Rates``, of all rows.
Columns = Any
TEXTS = ("looks", "dense_kind", "experts_kind")


def arrays(cases: list[Case]) -> Columns:
    """The cases, a column an array: the work of a step, the traffic, the traits, the answer."""
    found: Columns = SimpleNamespace()
    for name in cases[0].ideal._fields:
        if name not in TEXTS:
            setattr(found, name, np.array([getattr(case.ideal, name) for case in cases], float))
    found.looks = _looks(cases)
    found.prompt = np.array([case.row.prompt for case in cases], float)
    found.output = np.array([case.row.output for case in cases], float)
    found.clients = np.array([_clients(case) for case in cases], float)
    found.running = np.array([_running(case) for case in cases], float)
    found.budget = np.array([budget_of(case.plan) for case in cases], float)
    found.apart = np.array([is_apart(case.plan) for case in cases])
    found.drawn = np.array([case.row.drawn for case in cases])
    found.replicas = np.array([case.replicas for case in cases], float)
    found.requests = np.array([_requests(case) for case in cases])
    found.ends = np.isfinite(found.requests)
    found.requests = np.where(found.ends, found.requests, found.running)
    found.running = np.minimum(found.running, found.requests)
    found.filled = np.array(
        [_filled(case, n) for case, n in zip(cases, found.running, strict=True)]
    )
    rest = found.requests % found.running
    found.filled_rest = np.array([_filled(case, n) for case, n in zip(cases, rest, strict=True)])
    found.answer = np.array([case.row.value for case in cases], float)
    for name in ("kind", "metric", "group", "device", "engine", "source"):
        key = "model" if name == "group" else name
        setattr(found, key, np.array([getattr(case.row, name) for case in cases]))
    found.family = np.array([family_of(case.row.device) for case in cases])
    eras = (era_of(case.row.engine, case.row.version) for case in cases)
    found.era = np.array([era if "<" in era else "" for era in eras])
    found.dense_type = np.array([case.ideal.dense_kind for case in cases])
    found.experts_type = np.array([case.ideal.experts_kind for case in cases])
    found.mixture = np.array([case.mixed for case in cases])
    found.front = np.array(["dynamo" if is_validation(c.row) else "" for c in cases])
    found.simulated = np.ones(len(cases))  # a first token in the simulator over the formula's
    return found


def taken(found: Columns, mask: Any) -> Columns:
    """Some of the cases."""
    part = {k: v[mask] for k, v in vars(found).items() if k != "looks"}
    looks = [SimpleNamespace(**{k: v[mask] for k, v in vars(look).items()}) for look in found.looks]
    return SimpleNamespace(**part, looks=looks)


def _clients(case: Case) -> float:
    return max(1.0, case.row.concurrency / case.ranks)


def _requests(case: Case) -> float:
    """Of one rank, where all are there at once; more than it ever runs where it is not said."""
    many = requests_of(case.row) if case.row.kind == "queued" else None
    return ceil(many / case.ranks) if many else inf


def _filled(case: Case, batch: float) -> float:
    """What a benchmark's decode steps are filled up to."""
    return filled_up(batch, sizes_of(case.plan)) if case.row.kind == "queued" else batch


def _running(case: Case) -> float:
    """Sequences of one rank at once; a static batch is as large as it is."""
    if case.row.kind == "static":
        return _clients(case)
    held = case.capacity if case.plan.starts else _clients(case)
    return max(1.0, min(_clients(case), held, MOST_RUNNING))


def _looks(cases: list[Case]) -> list[SimpleNamespace]:
    most = max(len(case.ideal.looks) for case in cases)
    none = (None, 0.0, 0.0, 0.0)
    found = []
    for place in range(most):
        part = [c.ideal.looks[place] if place < len(c.ideal.looks) else none for c in cases]
        columns = zip(*[(row[0] or 1e12, *row[1:]) for row in part], strict=True)
        names = ("window", "read_s", "decode_s", "pair_s")
        found.append(SimpleNamespace(**dict(zip(names, map(np.array, columns), strict=True))))
    return found


def rates_of(values: dict[str, Any]) -> Columns:
    """Rates as ``calibration.calibrated`` makes them of products of factors."""
    rates = SimpleNamespace(**values)
    for name in SHARES:
        setattr(rates, name, capped(getattr(rates, name)))
    rates.spread = np.minimum(rates.spread, 1.0)
    for name in ("sharpness", "experts_sharpness"):
        setattr(rates, name, float(np.ravel(getattr(rates, name))[0]))
    return rates


def _seen(look: Any, prompt: Any, output: Any) -> Any:
    """``serving.seen_tokens`` over arrays."""
    window, last = look.window, prompt + output
    growing = (window * window - prompt * prompt) / 2 + window * (last - window)
    inside = np.where(prompt >= window, window, growing / np.maximum(output, 1))
    return np.where(last <= window, (prompt + last) / 2, inside)


def _pairs(look: Any, prompt: Any) -> Any:
    """``core.step.pairs`` of whole prompts, over arrays."""
    growing = np.minimum(prompt, look.window)
    return growing * (growing + 1) / 2 + (prompt - growing) * growing


def predicted(found: Columns, rates: Columns) -> Any:
    """What the package answers to each case, in the metric that was measured."""
    wait = terms.pipeline(found, rates)
    in_process = (found.kind == "queued") | (found.kind == "static")
    served: Columns = SimpleNamespace(**vars(rates))
    served.sequence_s = np.where(in_process, 0.0, rates.sequence_s)
    fixed, each = terms.fixed_s(found, served) * wait, terms.sequence_s(found, served) * wait
    looks = found.looks
    context = sum(
        terms.read_s(look, served, found.stages) * _seen(look, found.prompt, found.output)
        for look in looks
    )
    pairs = each + wait * sum(
        terms.pair_s(look, served, found.stages) * _pairs(look, found.prompt) for look in looks
    )

    def linear_s(tokens: Any) -> Any:
        launched = terms.prefill_s(found, served, tokens)
        many = tokens > DECODING[-1] * found.stages
        return np.where(many, launched, terms.linear_s(found, served, tokens)) * wait

    def step_s(batch: Any) -> Any:
        return fixed + linear_s(batch) + batch * (each + context * wait)

    running, output = found.running, np.maximum(found.output, 2)
    equal = 1.0 - found.drawn
    queued = found.kind == "queued"
    at_once = np.where(queued, found.ends, found.apart & (equal > 0) & ~in_process)
    first = np.minimum(found.prompt, found.budget)
    alone = (fixed + linear_s(first)) * found.prompt / first + pairs

    def prompting(batch: Any) -> Prompting:
        most = np.maximum(1, np.minimum(found.budget / found.prompt, batch))
        a_step = np.where(at_once, most, loop.prompts_a_step(batch, found.output, most))
        chunk = np.minimum(a_step * found.prompt, found.budget)
        beside = np.maximum(linear_s(batch + chunk) - linear_s(batch), 0)
        longer = np.where(found.apart, fixed + linear_s(chunk), beside)
        together = longer * found.prompt / chunk + pairs
        held_up = np.where(queued & found.ends, 1.0, found.group**rates.lockstep)
        return Prompting(together * held_up, alone, a_step)

    def batch_s(batch: Any) -> Any:
        filled = np.where(batch == running, found.filled, found.filled_rest)
        batch = np.maximum(batch, 1e-9)
        cost = prompting(batch)
        more = linear_s(np.maximum(filled, batch)) - linear_s(batch)
        steps = np.maximum(0, output - batch / cost.a_step)
        return output * step_s(batch) + batch * cost.together_s + steps * more

    cost = prompting(running)
    before = np.where(equal > 0, rates.waves, rates.drawn_waves)
    one = loop.mixed(running, output, step_s, cost)
    two = loop.apart(running, output, step_s, cost, before, equal)
    tpot = np.where(found.apart, two.tpot_s, one.tpot_s)
    ttft = (
        np.where(found.apart, two.ttft_s, one.ttft_s)
        + rates.request_s
        + rates.prompt_s * found.prompt
    )
    cycle = ttft + tpot * (output - 1)
    queue = cycle * np.maximum(found.clients - running, 0) / running
    ranks = found.replicas * found.group
    run_s = serving.run_s(found.requests, running, batch_s)
    full = found.requests * output / run_s * ranks
    static = (
        running
        * found.output
        / (fixed + linear_s(running * found.prompt) + running * pairs + output * step_s(running))
        * found.replicas
    )
    rate = np.select(
        [queued, found.kind == "static"],
        [full, static],
        running * output / cycle * ranks,
    )
    first_token = np.where(found.kind == "prefill", alone, (ttft + queue) * found.simulated)
    return np.select(
        [found.metric == "tpot_s", found.metric == "ttft_s"], [tpot, first_token], rate
    )
