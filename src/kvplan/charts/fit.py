"""One card as a bar of named terms."""

from __future__ import annotations

from typing import Any

from kvplan.charts.bars import ledger_bars
from kvplan.planning.fit import FitAnswer


def chart(answer: FitAnswer) -> Any:
    """One card as a bar of named terms."""
    title = f"{answer.plan.model.name} on {answer.plan.node.device.title}"
    return ledger_bars({"planned": answer.plan.ledger}, title)
