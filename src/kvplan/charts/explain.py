"""One card as it was logged, above the prediction where there is one."""

from __future__ import annotations

from typing import Any

from kvplan.charts.bars import ledger_bars
from kvplan.core.errors import BadValue
from kvplan.planning.explain import ExplainAnswer


def chart(answer: ExplainAnswer) -> Any:
    """One card as it was logged, above the prediction where there is one.

    Raises:
        BadValue: no line of the log states a size.
    """
    bars = {"logged": answer.ledger}
    if answer.predicted is not None:
        bars["predicted"] = answer.predicted.plan.ledger
    if not answer.ledger.terms:
        raise BadValue("No line of the log states a size, so that there is nothing to plot.")
    model = answer.start.last("model")
    return ledger_bars(bars, str(model.value) if model is not None else answer.start.engine)
