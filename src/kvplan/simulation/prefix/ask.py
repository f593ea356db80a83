"""The question behind ``kvplan prefix``, read and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count
from kvplan.simulation.needed import check_installed
from kvplan.simulation.prefix.answer import PrefixAnswer
from kvplan.simulation.prefix.hosted import bill
from kvplan.simulation.prefix.partings import find_partings
from kvplan.simulation.prefix.planned import Planned, planned
from kvplan.simulation.prefix.pooled import COARSE, pools_asked, pools_of
from kvplan.simulation.prefix.prompts import Prompts
from kvplan.simulation.prefix.reading import read_prompts
from kvplan.simulation.prefix.reorder import Reordered, reordered
from kvplan.simulation.prefix.rules import SLOTS, Rule, rule_of
from kvplan.simulation.prefix.seconds import seconds_of
from kvplan.simulation.prefix.shared import shared_of
from kvplan.simulation.prefix.tree import Found, Tree

MOST_SLOTS = 1024


def prefix(
    requests: Any,
    *,
    block_size: int | str | None = None,
    engine: str = "vllm",
    engine_version: str | None = None,
    tokenizer: str | None = None,
    pool_blocks: int | str | Sequence[int] | None = None,
    pool: int | str | None = None,
    warm_up: float = 0.0,
    slots: int | str = SLOTS,
    first: int | str | None = None,
    model: Any = None,
    gpu: str | None = None,
    gpus: int | None = None,
    price: float | None = None,
    currency: str = "USD",
    kv_dtype: str = "bf16",
    api: str | None = None,
    offline: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> PrefixAnswer:
    """What requests share, what an engine reuses of it, and where and at what cost they part.

    Args:
        requests: a file or folder of texts, messages, token ids or a trace with block ids, ``-``,
            bytes, or a list of any of them.
        block_size: tokens of a block; the engine's default where it is None.
        engine: vllm, sglang, llama.cpp, or none (whatever was seen is reused).
        engine_version: for the plan, with ``model`` and ``gpu``; the newest known.
        tokenizer: a tokenizer.json, its folder or a name of the hub; without it an estimate.
        pool_blocks: pools to try, in blocks as the engine counts them.
        pool: a pool in bytes, which takes ``model``.
        warm_up: the share of requests that only fill the pool.
        slots: of llama.cpp.
        first: take the first so many requests.
        model: what the prompts are for; with ``gpu`` the engine's block and pool are as planned,
            and the time that prompts take is told.
        gpu: the card.
        gpus: how many of it.
        price: of one card for one hour; a list price where it is None.
        currency: of the price.
        kv_dtype: of the cache, for a pool in bytes.
        api: a hosted model, ``openai/gpt-5-mini``, whose bill is told.
        offline: never ask the hub.
        on_progress: told how much is done and of how much.

    Raises:
        BadFile: nothing that says what prompts hold.
        BadQuestion: a value that cannot be read, a name that is not known.
        SourceUnreachable: it cannot be read.
    """
    check_installed("Comparing prompts", "prefix", ("numpy",))
    most = None if first is None else parse_count(first, "--first", 1 << 30)
    if not 0 <= warm_up < 1:
        raise BadValue(f"--warm-up {warm_up:g} is not a share from 0 to below 1.")
    prompts = read_prompts(requests, tokenizer=tokenizer, requests=most, offline=offline)
    plan = planned(
        engine, model, gpu, gpus=gpus, engine_version=engine_version, price=price,
        currency=currency, offline=offline,
    )  # fmt: skip
    rule = _rule(engine, block_size, slots, prompts, plan)
    sized = {"model": model, "kv_dtype": kv_dtype, "offline": offline}
    pools = pools_asked(pool_blocks, pool, rule, sized)
    if not pools and plan is not None and plan.num_blocks and engine in ("vllm", "sglang"):
        pools = [plan.num_blocks]
    answer = _answered(prompts, rule, pools, int(len(prompts) * warm_up), on_progress)
    if plan is not None:
        notes = (*answer.warnings, *plan.notes)
        answer = replace(answer, seconds=seconds_of(plan.answer, answer), warnings=notes)
    return answer if api is None else replace(answer, bill=bill(api, answer))


def _rule(
    engine: str,
    block_size: int | str | None,
    slots: int | str,
    prompts: Prompts,
    plan: Planned | None,
) -> Rule:
    """The engine's rule, its block as asked, else as planned."""
    asked = None if block_size is None else parse_count(block_size, "--block-size", 1 << 20)
    if asked is None and plan is not None and engine == "vllm":
        asked = plan.block_size
    return rule_of(engine, asked, parse_count(slots, "--slots", MOST_SLOTS), prompts.unit_tokens)


def _answered(
    prompts: Prompts,
    rule: Rule,
    pools: Sequence[int],
    warm_up: int,
    on_progress: Callable[[int, int], None] | None,
) -> PrefixAnswer:
    """All that follows from the prompts themselves."""
    told = on_progress or (lambda done, total: None)
    told(0, 1 + len(pools))
    tree, found = _grown(prompts)
    seen = _seen(prompts, found)
    reused = rule.reused(prompts, [one.length for one in found])
    partings = find_partings(prompts, [one.parting for one in found if one.parting])
    told(1, 1 + len(pools))
    return PrefixAnswer(
        prompts=prompts,
        rule=rule,
        warm_up=warm_up,
        reused=tuple(reused),
        seen=seen,
        shared=shared_of(prompts, tree),
        partings=partings,
        reordered=_reordered(prompts, rule, partings.families, reused, warm_up),
        pools=tuple(pools_of(prompts, rule, pools, warm_up, told)),
        warnings=(
            *_warnings(prompts, rule, pools, partings.sampled),
            *_too_short(rule, max(seen), sum(reused)),
        ),
    )


def _too_short(rule: Rule, longest: int, reused: int) -> Iterator[str]:
    """Prompts that share something, but no block of it."""
    if longest and not reused and longest < rule.block_size:
        yield (
            f"No prompt shares more than its first {longest:,} tokens, and a block has "
            f"{rule.block_size:,}: only full blocks are reused."
        )


def _seen(prompts: Prompts, found: Sequence[Found]) -> tuple[int, ...]:
    """Tokens of each prompt that came before."""
    return tuple(
        prompts.tokens(one.length, row.tokens) for one, row in zip(found, prompts.rows, strict=True)
    )


def _grown(prompts: Prompts) -> tuple[Tree, list[Found]]:
    """The tree of all prompts, and what each found when it came."""
    tree = Tree(prompts.rows[0].units[:0])
    return tree, [tree.add(i, row.units, row.kept) for i, row in enumerate(prompts.rows)]


def _reordered(
    prompts: Prompts,
    rule: Rule,
    families: Sequence[tuple[int, int]],
    reused: Sequence[int],
    skipped: int,
) -> Reordered | None:
    """The other order, where it reuses more."""
    other = reordered(prompts, families)
    if other is None:
        return None
    _, found = _grown(other)
    moved = rule.reused(other, [one.length for one in found])
    saved = sum(moved[skipped:]) - sum(reused[skipped:])
    if saved <= 0:
        return None
    total = sum(row.tokens for row in prompts.rows[skipped:])
    return Reordered(
        hit_rate=sum(moved[skipped:]) / total,
        reused_tokens=sum(moved[skipped:]),
        saved_tokens=saved,
        reused=tuple(moved),
        seen=_seen(other, found),
    )


def _warnings(prompts: Prompts, rule: Rule, pools: Sequence[int], sampled: float) -> list[str]:
    told = list(prompts.notes)
    if prompts.estimated:
        told.append(f"Tokens are {prompts.counted}: pass --tokenizer for the model's own.")
    if prompts.num_skipped:
        told.append(
            f"{prompts.num_skipped:,} rows are no prompts; the first: {prompts.skipped[0]}."
        )
    if pools and rule.block_size < COARSE and prompts.unit_tokens == 1:
        told.append(f"In a pool tokens are counted in blocks of {COARSE}.")
    if pools and 1 < rule.block_size < prompts.unit_tokens:
        told.append(f"In a pool tokens are kept in the trace's blocks of {prompts.unit_tokens}.")
    if sampled < 1:
        told.append(
            f"What partings cost is scaled up from {sampled:.0%} of them; the other order moves no "
            "more prompts than these."
        )
    return told
