"""One card as a bar of named terms, and what follows of its pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.charts import batch, concurrency, growth
from kvplan.charts.bars import ledger_bars
from kvplan.core.errors import BadValue
from kvplan.core.formats import Format, parse_format
from kvplan.planning.fit import FitAnswer


def chart(answer: FitAnswer) -> Any:
    """One card as a bar of named terms."""
    title = f"{answer.plan.model.name} on {answer.plan.node.device.title}"
    return ledger_bars({"planned": answer.plan.ledger}, title)


def grown(answer: FitAnswer) -> Any:
    """One conversation's cache by its length, in the format that the engine keeps it in."""
    return growth.by_kind(answer.plan.model, _format(answer))


def _format(answer: FitAnswer) -> Format:
    """The cache's format as the launch says it; 16 bits where that names none of its own."""
    settings = answer.plan.launch.settings
    for flag in ("--kv-dtype", "--kv-cache-dtype", "--cache-type-k", "OLLAMA_KV_CACHE_TYPE"):
        value = settings[flag].value if flag in settings else None
        if isinstance(value, Format):
            return value
        try:
            return parse_format(str(value).partition("_e")[0])
        except BadValue:
            continue
    return parse_format("bf16")


PARTS: Mapping[str, Callable[[FitAnswer], Any]] = {
    "card": chart,
    "concurrency": concurrency.chart,
    "speed": batch.chart,
    "growth": grown,
}
