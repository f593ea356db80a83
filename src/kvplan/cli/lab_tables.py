"""What a person sees of the lab: bytes, times and quality of each cache, and the batch."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_bytes, format_seconds
from kvplan.lab.answer import LabAnswer
from kvplan.lab.figures import Row

RECORDS = (
    "cache", "prompt_tokens", "output_tokens", "positions_processed", "predicted_bytes",
    "measured_bytes", "device_bytes", "host_bytes", "disk_bytes", "prefill_bytes",
    "peak_rss_bytes", "ttft_s", "itl_s", "tokens_per_s", "perplexity", "perplexity_spread",
    "perplexity_ratio", "perplexity_ratio_spread", "recall", "same_tokens", "identical_output",
)  # fmt: skip


def tables(answer: LabAnswer) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    found = [_caches(answer), _quality(answer), _batch(answer), _lost(answer), _compiled(answer)]
    return [table for table in found if table.rows]


def records(answer: LabAnswer) -> tuple[Sequence[str], list[Sequence[object]]]:
    """A line a cache, for CSV."""
    rows = [row.to_dict() for row in answer.rows]
    return RECORDS, [["" if row[key] is None else row[key] for key in RECORDS] for row in rows]


def explanation(answer: LabAnswer) -> list[str]:
    """What each cache is, and how the figures were made."""
    return [
        *(f"{row.cache}: {row.note}" for row in answer.rows),
        (
            "bytes: of the storages that a cache's tensors keep alive, between steps, at the end; "
            "predicted from the layers that kvplan reads in the model's config."
        ),
        (
            "perplexity: of the second half of each passage, in chunks, the first read at once; "
            "± is the standard deviation over the passages of the ratio to the full cache."
        ),
        (
            "needles: a fact asked for at the end of a text; a small model finds few in long ones, "
            "whatever the cache, so read them beside the full cache's."
        ),
    ]


def _caches(answer: LabAnswer) -> Table:
    title = (
        f"{answer.model} in {answer.dtype} on {answer.device}, {_threads(answer.threads)}: "
        f"{_lengths(answer)}"
    )
    columns = (
        "cache", "predicted B", "measured B", "", "positions", "first token", "a token",
        "peak memory", "same as full",
    )  # fmt: skip
    rows = tuple(
        (
            row.cache,
            f"{row.predicted_bytes:,}",
            f"{row.measured_bytes:,}",
            "=" if row.predicted_bytes == row.measured_bytes else "≠",
            f"{row.positions_processed:,}",
            format_seconds(row.ttft_s),
            NONE if row.itl_s is None else format_seconds(row.itl_s),
            NONE if row.peak_bytes is None else format_bytes(row.peak_bytes),
            "identical" if row.identical_output else f"{row.same_tokens} tokens",
        )
        for row in answer.rows
    )
    return Table(title, columns, rows, "lrrlrrrrr")


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _lengths(answer: LabAnswer) -> str:
    row = next(iter(answer.rows), None)
    return f"{row.prompt_tokens:,} tokens in, {row.output_tokens:,} out" if row else "no cache"


def _quality(answer: LabAnswer) -> Table:
    if not any(row.perplexity or row.found for row in answer.rows):
        return Table("", (), (), "")
    needles = answer.rows[0].found or ()
    lengths = sorted({one.length for one in needles})
    title = (
        f"Perplexity of {answer.passages} passages of {answer.passage_tokens:,} tokens; facts found"
        f" in texts of so many tokens; evicting caches keep {answer.budget:,}"
    )
    columns = ("cache", "perplexity", "to full", "±", *(f"{length:,}" for length in lengths))
    rows = tuple(
        (row.cache, *_perplexity(row), *(_recall(row, length) for length in lengths))
        for row in answer.rows
    )
    return Table(title, columns, rows, "lrrr" + "r" * len(lengths))


def _perplexity(row: Row) -> tuple[str, str, str]:
    if row.perplexity is None or row.full_perplexity is None:
        return NONE, NONE, NONE
    spread = row.perplexity.ratio_spread(row.full_perplexity)
    ratio = row.perplexity.ratio(row.full_perplexity) - 1
    return (
        f"{row.perplexity.value:.2f}",
        f"{ratio:+.2%}",
        NONE if spread is None else f"{spread:.2%}",
    )


def _recall(row: Row, length: int) -> str:
    found = [one for one in row.found or () if one.length == length]
    return f"{sum(one.whole for one in found)} of {len(found)}" if found else NONE


def _batch(answer: LabAnswer) -> Table:
    batch = answer.batch
    if batch is None:
        return Table("", (), (), "")
    title = (
        f"{batch.requests} requests through one pool, {batch.shared_tokens:,} of their tokens the "
        f"same: {batch.prompt_tokens:,} in all, {batch.output_tokens:,} out each"
    )
    columns = (
        "prefix reuse", "computed", "reused", "blocks", "at most", "first tokens of all",
        "simulator", "as alone",
    )  # fmt: skip
    rows = tuple(
        (
            "on" if side.reuse else "off",
            f"{side.computed_tokens:,}",
            f"{side.reused_tokens:,}",
            f"{side.peak_blocks:,}",
            format_bytes(side.peak_bytes),
            format_seconds(side.first_tokens_s),
            "equal, each step" if side.equal_steps else "differs",
            "identical" if side.identical_output else "differs",
        )
        for side in batch.sides
    )
    return Table(title, columns, rows, "lrrrrrll")


def _lost(answer: LabAnswer) -> Table:
    title = "What is left of the full cache's own answers"
    columns = ("way", "tokens kept", "still the likeliest", "perplexity of the answers")
    rows = tuple(
        (one.way, f"{one.kept_tokens:,}", f"{one.agreement:.0%}", f"{one.perplexity:.2f}")
        for one in answer.lost
    )
    return Table(title, columns, rows, "lrrr")


def _compiled(answer: LabAnswer) -> Table:
    columns = ("cache", "torch.compile", "a token", "compiling", "")
    rows = tuple(
        (
            one.cache,
            "on" if one.compiled else "off",
            NONE if one.itl_s is None else format_seconds(one.itl_s),
            NONE if one.compile_s is None else format_seconds(one.compile_s),
            one.note,
        )
        for one in answer.compiled
    )
    return Table("", columns, rows, "llrrl")
