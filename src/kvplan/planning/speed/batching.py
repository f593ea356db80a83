"""How an engine puts prompts between decode steps: together with them or before them, in chunks."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.step import AT_ONCE, Way
from kvplan.core.version import Version
from kvplan.engines.base import EnginePlan
from kvplan.engines.sglang.fraction import MAX_PREFILL_TOKENS
from kvplan.planning.speed.rates import Rates

# Tokens of a step at most, by the flag that says so in each engine.
BUDGETS: Final = (
    "--max-num-batched-tokens",
    "--chunked-prefill-size",
    "--max-num-tokens",
    "--batch-size",
    "--num_batch",
)
USUAL_BUDGET: Final = 8192
# Engines that decode nothing in a step of prompts: SGLang without --enable-mixed-chunk
# (managers/scheduler.py, get_next_batch_to_run, 0.5.12), llama.cpp's and transformers' batches,
# vLLM before its second scheduler (0.8).
APART: Final = frozenset({"sglang", "transformers", "none"})
MIXED: Final = "--enable-mixed-chunk"  # in a launch only where it is in force
PREFILL: Final = "--max-prefill-tokens"
MIXES_SINCE: Final = Version.parse("0.8")


class Batching(NamedTuple):
    """``budget`` tokens a step, ``apart`` where prompts go before decoding; the rest as in Rates.

    ``held_up`` is how often a prompt's time counts in a lock-step group of ``group`` ranks.
    """

    apart: bool = False
    budget: int = USUAL_BUDGET
    waves: float = 0.5
    drawn_waves: float = 0.0
    group: int = 1
    held_up: float = 1.0
    way: Way = AT_ONCE


def is_apart(plan: EnginePlan) -> bool:
    """Whether prompts go before decoding."""
    if plan.engine == "vllm":
        return plan.version is not None and Version.parse(plan.version) < MIXES_SINCE
    return plan.engine in APART and MIXED not in plan.launch


def budget_of(plan: EnginePlan) -> int:
    """Tokens of a step at most.

    SGLang's prompts together pass neither a chunk nor --max-prefill-tokens (schedule_policy.py,
    add_one_req, 0.5.12). One that is longer than the second alone goes whole, up to a chunk: the
    same work in fewer steps than this says.
    """
    launch = {flag: plan.launch[flag] for flag in plan.launch}
    given = (launch.get(flag) for flag in BUDGETS)
    found = next((tokens for tokens in given if isinstance(tokens, int) and tokens > 0), None)
    if plan.engine != "sglang":
        return found or USUAL_BUDGET
    prefill = int(launch.get(PREFILL, MAX_PREFILL_TOKENS))
    return min(found or prefill, prefill)


def batching_of(plan: EnginePlan, rates: Rates, group: int) -> Batching:
    """The batching of a plan at some rates."""
    return Batching(
        apart=is_apart(plan),
        budget=budget_of(plan),
        waves=rates.waves,
        drawn_waves=rates.drawn_waves,
        group=group,
        held_up=float(group**rates.lockstep),
        way=Way(rates.request_s, rates.prompt_s),
    )
