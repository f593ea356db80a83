"""The lengths and the rate of a trace, for a goal."""

from __future__ import annotations

from typing import Any

from kvplan.core.errors import BadValue
from kvplan.simulation.lengths import Empirical


def of_trace(
    trace: Any, prompt: Any, output: Any, rate: Any, users: Any
) -> tuple[Empirical, Empirical, Any]:
    """Its prompts, its answers, and its mean rate where none is given and no users are.

    Raises:
        BadValue: lengths beside a trace, a trace of one moment, or an extra that is not installed.
        BadFile: a file that is no trace.
    """
    if prompt is not None or output is not None:
        raise BadValue("A trace has its own lengths.", "Leave --prompt and --output out.")
    from kvplan.simulation.traces import read_traffic

    found = read_traffic(trace)
    name = found.source
    prompts = Empirical(tuple(map(float, found.prompt_tokens)), f"{name}#prompt")
    answers = Empirical(tuple(map(float, found.output_tokens)), f"{name}#output")
    if rate is None and users is None:
        lasts = float(found.arrival_s[-1] - found.arrival_s[0])
        if lasts <= 0:
            raise BadValue("All requests of the trace come at once.", "Give --rate or --users.")
        rate = (len(found) - 1) / lasts
    return prompts, answers, rate
