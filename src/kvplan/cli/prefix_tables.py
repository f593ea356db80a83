"""What a person sees of shared beginnings: reuse, the partings, the tree, the pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_seconds
from kvplan.simulation.prefix.answer import PrefixAnswer
from kvplan.simulation.prefix.hosted import Bill
from kvplan.simulation.prefix.shared import dearest

MOST_ROWS, FEW_ROWS = 12, 4
WIDTH = 36  # of a text in a cell


def tables(answer: PrefixAnswer) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    found = [_reuse(answer), _pools(answer), _breaks(answer), _tree(answer)]
    return [table for table in found if table.rows]


def records(answer: PrefixAnswer) -> tuple[tuple[str, ...], list[Sequence[object]]]:
    """A row a request, for CSV."""
    rows = zip(answer.prompts.rows, answer.seen, answer.reused, strict=True)
    columns = ("request", "prompt_tokens", "seen_tokens", "reused_tokens")
    return columns, [(i, row.tokens, seen, hit) for i, (row, seen, hit) in enumerate(rows)]


def _reuse(answer: PrefixAnswer) -> Table:
    counted = len(answer.prompts) - answer.warm_up
    last = f", the last {counted:,} counted" if answer.warm_up else ""
    title = f"{len(answer.prompts):,} requests of {answer.prompts.source}{last}: {answer.rule.said}"
    return Table(title, ("", "prompt", "reused", "computed", "hit rate", *_extra(answer)[0]),
                 tuple(_reuse_rows(answer)), "lrrrr" + "r" * len(_extra(answer)[0]))  # fmt: skip


def _reuse_rows(answer: PrefixAnswer) -> Iterator[tuple[str, ...]]:
    asked = ("as they are", answer.reused_tokens, answer.hit_rate)
    moved = answer.reordered
    rows = [asked]
    if moved is not None:
        rows.append(("what differs moved behind", moved.reused_tokens, moved.hit_rate))
    for place, (name, reused, rate) in enumerate(rows):
        computed = answer.prompt_tokens - reused
        yield (name, f"{answer.prompt_tokens:,}", f"{reused:,}", f"{computed:,}", f"{rate:.1%}",
               *_extra(answer)[1 + place])  # fmt: skip


def _extra(answer: PrefixAnswer) -> list[tuple[str, ...]]:
    """Columns of seconds and money: their names, as they are, reordered."""
    names, here, there = list[str](), list[str](), list[str]()
    if answer.seconds is not None:
        other = answer.seconds.reordered_s
        names.append("to compute")
        here.append(format_seconds(answer.seconds.with_reuse_s))
        there.append(NONE if other is None else format_seconds(other))
        if answer.seconds.cost is not None:
            spent = answer.seconds.cost
            names.append(f"cards ({spent.currency})")
            here.append(_money(spent.with_reuse))
            there.append(_money(spent.reordered))
    if answer.bill is not None:
        cost = answer.bill.cost_reordered
        names.append(f"{answer.bill.model} ({answer.bill.currency})")
        here.append(_money(answer.bill.cost))
        there.append(_money(cost))
    return [tuple(names), tuple(here), tuple(there)]


def _money(amount: float | None) -> str:
    """Three digits of what is less than 1."""
    if amount is None:
        return NONE
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.3g}"


def _breaks(answer: PrefixAnswer) -> Table:
    """Of a trace's ids, which say nothing to a reader, a few."""
    rows = tuple(
        (
            f"{one.position:,}",
            NONE if one.message_index is None else str(one.message_index),
            _cut(one.text_before[-WIDTH:]),
            _cut(one.text_a),
            _cut(one.text_b),
            f"{one.requests:,}",
            NONE if one.lost_tokens is None else f"{one.lost_tokens:,}",
        )
        for one in answer.partings.breaks[: _most(answer)]
    )
    columns = (
        "part after",
        "message",
        "behind",
        "one goes on",
        "another",
        "requests",
        "lost tokens",
    )
    return Table("Where prompts part, the dearest first", columns, rows, "rrlllrr")


def _most(answer: PrefixAnswer) -> int:
    return FEW_ROWS if answer.prompts.are_blocks else MOST_ROWS


def _cut(text: str) -> str:
    """A text on one line."""
    shown = text.replace("\n", "⏎").replace("\t", " ")
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 1]}…"


def _tree(answer: PrefixAnswer) -> Table:
    told = answer.shared.rows
    chosen = dearest([r.depth for r in told], [r.saved_tokens for r in told], _most(answer))
    rows = tuple(
        (
            f"{'  ' * min(row.depth, 10)}{row.start:,}",
            f"{row.tokens:,}",
            f"{row.requests:,}",
            f"{row.saved_tokens:,}",
            _cut(row.text),
        )
        for row in (told[index] for index in chosen)
    )
    more = answer.shared.num_rows - len(rows)
    title = f"What is shared ({more:,} more)" if more > 0 else "What is shared"
    columns = ("from token", "tokens", "requests", "computed once saves", "begins")
    return Table(title, columns, rows, "lrrrl")


def _pools(answer: PrefixAnswer) -> Table:
    rows = tuple(
        (f"{pool.blocks:,}", pool.policy, f"{pool.hit_tokens:,}", f"{pool.hit_rate:.1%}")
        for pool in answer.pools
    )
    title = f"Pools of blocks of {answer.rule.block_size} tokens, one request after the other"
    return Table(title, ("blocks", "policy", "reused", "hit rate"), rows, "rlrr")


def explanation(answer: PrefixAnswer) -> list[str]:
    """How each figure follows."""
    rule = answer.rule
    looked = "looked up when those before it have been answered, in a pool without end"
    lines = [
        f"Tokens: {answer.prompts.counted}.",
        f"Reuse: {rule.said}; every prompt is {looked}.",
        "Lost: what stands equally behind a parting in two prompts, in runs of 16 tokens and more.",
    ]
    if answer.pools:
        lines.append("optimum: the block whose next use is farthest goes; no policy has more hits.")
    if any(pool.policy == "vllm" for pool in answer.pools):
        lines.append("vllm: its own pool, block for block, one request after the other.")
    if answer.seconds is not None:
        said = answer.seconds
        alone = format_seconds(said.without_reuse_s)
        lines.append(f"Seconds: {said.source}; within {said.error:.0%}. Without reuse {alone}.")
    if answer.bill is not None:
        lines += _billing(answer.bill)
    return lines


def _billing(bill: Bill) -> Iterator[str]:
    api = bill.caching
    yield (
        f"{api.provider} counts a beginning from {api.minimum_tokens:,} tokens on, in steps of "
        f"{api.step_tokens:,} ({api.note}; {api.source}): {bill.cached_tokens:,} tokens here."
    )
    yield f"Prices: {bill.source}; without caching {_money(bill.cost_without_caching)}."
