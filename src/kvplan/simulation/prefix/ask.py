"""The question behind ``kvplan prefix``, read and answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_bytes, parse_count, parse_tokens
from kvplan.planning.size import size
from kvplan.simulation.needed import check_installed
from kvplan.simulation.prefix.answer import PrefixAnswer
from kvplan.simulation.prefix.hosted import bill
from kvplan.simulation.prefix.partings import find_partings
from kvplan.simulation.prefix.pools import POLICIES, Looked, PoolHits
from kvplan.simulation.prefix.prompts import Prompts
from kvplan.simulation.prefix.reading import read_prompts
from kvplan.simulation.prefix.reorder import Reordered, reordered
from kvplan.simulation.prefix.rules import SLOTS, Blocks, Rule, rule_of
from kvplan.simulation.prefix.seconds import seconds_of
from kvplan.simulation.prefix.shared import shared_of
from kvplan.simulation.prefix.tree import Found, Tree
from kvplan.simulation.prompts.blocks import BlockIds

MOST_BLOCKS = 1 << 40
MOST_SLOTS = 1024
BY_BLOCKS = "Pass --pool-blocks as the engine prints them."
COARSE = 16  # tokens of a block in a pool whose own blocks are smaller


def prefix(
    requests: Any,
    *,
    block_size: int | str | None = None,
    engine: str = "vllm",
    tokenizer: str | None = None,
    pool_blocks: int | str | Sequence[int] | None = None,
    pool: int | str | None = None,
    warm_up: float = 0.0,
    slots: int | str = SLOTS,
    first: int | str | None = None,
    model: Any = None,
    gpu: str | None = None,
    gpus: int | None = None,
    kv_dtype: str = "bf16",
    api: str | None = None,
    offline: bool = False,
) -> PrefixAnswer:
    """What requests share, what an engine reuses of it, and where and at what cost they part.

    Args:
        requests: a file or folder of texts, messages, token ids or a trace with block ids, ``-``,
            bytes, or a list of any of them.
        block_size: tokens of a block; the engine's default where it is None.
        engine: vllm, sglang, llama.cpp, or none (whatever was seen is reused).
        tokenizer: a tokenizer.json, its folder or a name of the hub; without it an estimate.
        pool_blocks: pools to try, in blocks as the engine counts them.
        pool: a pool in bytes, which takes ``model``.
        warm_up: the share of requests that only fill the pool.
        slots: of llama.cpp.
        first: take the first so many requests.
        model: what the prompts are for; with ``gpu`` the time they take is told.
        gpu: the card.
        gpus: how many of it.
        kv_dtype: of the cache, for a pool in bytes.
        api: a hosted model, ``openai/gpt-5-mini``, whose bill is told.
        offline: never ask the hub.

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
    asked_size = None if block_size is None else parse_count(block_size, "--block-size", 1 << 20)
    rule = rule_of(
        engine,
        asked_size,
        parse_count(slots, "--slots", MOST_SLOTS),
        prompts.unit_tokens,
    )
    blocks = _pools_asked(pool_blocks, pool, rule, model, kv_dtype, offline)
    answer = _answered(prompts, rule, blocks, int(len(prompts) * warm_up))
    if model is not None and gpu is not None:
        asked = {"model": model, "gpu": gpu, "gpus": gpus, "offline": offline}
        answer = replace(answer, seconds=seconds_of(asked, answer))
    return answer if api is None else replace(answer, bill=bill(api, answer))


def _answered(prompts: Prompts, rule: Rule, pools: Sequence[int], warm_up: int) -> PrefixAnswer:
    """All that follows from the prompts themselves."""
    tree, found = _grown(prompts)
    reused = rule.reused(prompts, [one.length for one in found])
    partings = find_partings(prompts, [one.parting for one in found if one.parting])
    return PrefixAnswer(
        prompts=prompts,
        rule=rule,
        warm_up=warm_up,
        reused=tuple(reused),
        seen=_seen(prompts, found),
        shared=shared_of(prompts, tree),
        partings=partings,
        reordered=_reordered(prompts, rule, partings.families, reused, warm_up),
        pools=tuple(_pools(prompts, rule, pools, warm_up)),
        warnings=tuple(_warnings(prompts, rule, pools, partings.sampled)),
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


def _pools_asked(
    pool_blocks: int | str | Sequence[int] | None,
    pool: int | str | None,
    rule: Rule,
    model: Any,
    kv_dtype: str,
    offline: bool,
) -> list[int]:
    """Blocks of every pool that was asked for."""
    asked: list[int] = []
    if pool_blocks is not None:
        given = pool_blocks.split(",") if isinstance(pool_blocks, str) else pool_blocks
        each = [given] if isinstance(given, int) else given
        asked += [parse_count(_plain(one), "--pool-blocks", MOST_BLOCKS) for one in each]
    if pool is not None:
        if model is None:
            raise BadValue(
                "A pool in bytes takes --model, whose blocks fill it.",
                "Or pass --pool-blocks.",
            )
        sized = size(model, kv_dtype=kv_dtype, offline=offline)
        token = getattr(sized, "bytes_per_token", None)
        if not token:
            raise BadValue(
                "A token of this model has no single size: its layers keep different amounts.",
                BY_BLOCKS,
            )
        asked.append(parse_bytes(pool) // (token * rule.block_size))
    if asked and not isinstance(rule, Blocks):
        raise BadValue("llama.cpp has no pool of blocks: its slots are its cache.", "See --slots.")
    return asked


def _plain(one: Any) -> Any:
    return parse_tokens(one) if isinstance(one, str) else one


def _pools(prompts: Prompts, rule: Rule, pools: Sequence[int], skipped: int) -> list[PoolHits]:
    """Every policy in every pool."""
    if not pools or not isinstance(rule, Blocks):
        return []
    rows, block = _block_rows(prompts, rule)
    lengths = [row.tokens for row in prompts.rows]
    looked = Looked(
        rows=rows,
        tokens=lambda hits, i: rule.tokens(min(hits * block, lengths[i]), lengths[i]),
        prompt_tokens=lengths,
        warm_up=skipped,
    )
    found = []
    for blocks in pools:
        # vLLM keeps block 0 for itself: v1/core/block_pool.py, null_block (0.32.0).
        usable = blocks - (rule.engine == "vllm")
        held = usable * rule.block_size // block
        found += [replace(looked.hits(policy, held), blocks=blocks) for policy in POLICIES]
    return found


def _block_rows(prompts: Prompts, rule: Blocks) -> tuple[list[list[int]], int]:
    """Prompts as ids of blocks, and the tokens of a block.

    Raises:
        BadValue: blocks that do not fall on those of the trace.
    """
    unit = prompts.unit_tokens
    if unit == 1:
        block = max(rule.block_size, COARSE)
        ids = BlockIds(block * prompts.units_per_token)
        return [ids.of(row.units) for row in prompts.rows], block
    if rule.block_size > unit:
        if rule.block_size % unit:
            raise BadValue(
                f"Blocks of {rule.block_size} tokens do not fall on the trace's of {unit}.",
                f"Pass a multiple of {unit}, or a size that divides it.",
            )
        step = rule.block_size // unit
        return [row.units[step - 1 :: step].tolist() for row in prompts.rows], rule.block_size
    return [row.units.tolist() for row in prompts.rows], unit


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
        told.append(f"What partings cost is scaled up from {sampled:.0%} of them.")
    return told
