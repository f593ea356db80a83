"""The pools that were asked for: how many blocks each has, and what every policy reuses in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.units import ceil_div, parse_bytes, parse_count, parse_tokens
from kvplan.planning.size import size
from kvplan.simulation.prefix.pools import POLICIES, Looked, PoolHits, Rows
from kvplan.simulation.prefix.prompts import Prompt, Prompts
from kvplan.simulation.prefix.rules import Blocks, Rule
from kvplan.simulation.prefix.vllm_pool import vllm_hits
from kvplan.simulation.prompts.blocks import BlockIds

MOST_BLOCKS = 1 << 40
BY_BLOCKS = "Pass --pool-blocks as the engine prints them."
MOST_LISTED = 5_000_000  # ids that are lists: 400 MB at most
MOST_EXACT = 3_000_000  # blocks of all prompts: some ten seconds
COARSE = 16  # tokens of a block in a pool whose own blocks are smaller


def pools_asked(
    pool_blocks: int | str | Sequence[int] | None, pool: int | str | None, rule: Rule, model: Any
) -> list[int]:
    """Blocks of every pool that was asked for; ``model`` are the keywords of a size.

    Raises:
        BadValue: a pool that cannot be read, or that the engine does not have.
        BadQuestion: a model that is not known.
    """
    asked: list[int] = []
    if pool_blocks is not None:
        given = pool_blocks.split(",") if isinstance(pool_blocks, str) else pool_blocks
        each = [given] if isinstance(given, int) else given
        asked += [parse_count(_plain(one), "--pool-blocks", MOST_BLOCKS) for one in each]
    if pool is not None:
        asked.append(_blocks_of(parse_bytes(pool), rule, model))
    if asked and not isinstance(rule, Blocks):
        raise BadValue("llama.cpp has no pool of blocks: its slots are its cache.", "See --slots.")
    return asked


def _blocks_of(pool: int, rule: Rule, model: Any) -> int:
    """Blocks of a pool in bytes."""
    if model["model"] is None:
        raise BadValue("A pool in bytes takes --model, whose blocks fill it.", BY_BLOCKS)
    token: int | None = getattr(size(**model), "bytes_per_token", None)
    if not token:
        raise BadValue(
            "A token of this model has no single size: its layers keep different amounts.",
            BY_BLOCKS,
        )
    return pool // (token * rule.block_size)


def _plain(one: Any) -> Any:
    return parse_tokens(one) if isinstance(one, str) else one


def pools_of(
    prompts: Prompts,
    rule: Rule,
    pools: Sequence[int],
    warm_up: int,
    told: Callable[[int, int], None],
) -> list[PoolHits]:
    """Every policy in every pool; ``told`` hears of each."""
    if not pools or not isinstance(rule, Blocks):
        return []
    rows, block = _block_rows(prompts, rule)
    lengths = [row.tokens for row in prompts.rows]
    looked = Looked(
        rows=rows,
        tokens=lambda hits, i: rule.tokens(min(hits * block, lengths[i]), lengths[i]),
        prompt_tokens=lengths,
        warm_up=warm_up,
    )
    exact = _is_exact(prompts, rule, block)
    found: list[PoolHits] = []
    for blocks in pools:
        if exact:
            hits = vllm_hits(rows, lengths, block, blocks)
            found.append(looked.counted("vllm", blocks, hits))
        # vLLM keeps block 0 for itself: v1/core/block_pool.py, null_block (0.32.0).
        usable = blocks - (rule.engine == "vllm")
        held = usable * rule.block_size // block
        found += [replace(looked.hits(policy, held), blocks=blocks) for policy in POLICIES]
        told(1 + len({one.blocks for one in found}), 1 + len(pools))
    return found


def _is_exact(prompts: Prompts, rule: Blocks, block: int) -> bool:
    """Whether vLLM's own pool can be followed: its blocks are known, and not too many."""
    total = sum(ceil_div(row.tokens, block) for row in prompts.rows)
    return rule.engine == "vllm" and block == rule.block_size and total <= MOST_EXACT


class _Slices:
    """Rows of block ids as lists, each made when it is looked at: a trace's ids stay an array."""

    def __init__(self, rows: Sequence[Prompt], step: int) -> None:
        self.rows, self.step = rows, step

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> list[int]:
        found: list[int] = self.rows[index].units[self.step - 1 :: self.step].tolist()
        return found


def _block_rows(prompts: Prompts, rule: Blocks) -> tuple[Rows, int]:
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
        return _listed(prompts.rows, rule.block_size // unit), rule.block_size
    return _listed(prompts.rows, 1), unit


def _listed(rows: Sequence[Prompt], step: int) -> Rows:
    """Few ids as lists, made once; many stay where they are."""
    found = _Slices(rows, step)
    if sum(len(row.units) for row in rows) > MOST_LISTED:
        return found
    return [found[index] for index in range(len(rows))]
