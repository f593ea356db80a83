"""The traffic of a question: a trace as it is or at another rate, or drawn from distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count
from kvplan.simulation.synthetic import synthetic
from kvplan.simulation.traces import read_traffic
from kvplan.simulation.traces.columns import MOST_REQUESTS
from kvplan.simulation.traffic import Traffic

OF_DRAWS: Final = ("prompt", "arrivals", "cv", "shared_prefix", "prefixes", "turns", "think")
OF_TRACES: Final = ("columns", "recorded", "tokenizer", "workload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked of traffic, in the words of the command line."""

    trace: Any = None
    requests: int | None = None
    rate: float | None = None
    concurrency: int | None = None
    prompt: str | int = 1024
    output: str | int | None = None
    arrivals: str = "poisson"
    cv: float = 1.0
    shared_prefix: int | str = 0
    prefixes: int = 1
    turns: int = 1
    think: str | float = 0.0
    columns: str | Mapping[str, str] | None = None
    recorded: bool | None = None
    tokenizer: str | None = None
    workload: str | None = None
    offline: bool = False

    def traffic(self, seed: int) -> Traffic:
        """The traffic of a seed.

        Raises:
            BadQuestion: a distribution, a trace or a rate that cannot be read.
        """
        if self.requests is not None:
            parse_count(self.requests, "--requests", MOST_REQUESTS)
        if self.trace is None:
            for flag in self._given(OF_TRACES):
                raise BadValue(f"{flag} says how a trace is read.", "Pass --trace FILE.")
            return self._drawn(seed)
        if self.rate is not None and self.concurrency is not None:
            raise BadValue("A trace is sent at a --rate or in a closed loop, not both.")
        found = read_traffic(
            self.trace,
            requests=self.requests,
            columns=self.columns,
            recorded=self.recorded,
            tokenizer=self.tokenizer,
            output=256 if self.output is None else self.output,
            workload=self.workload,
            seed=seed,
            offline=self.offline,
        )
        unheard = [
            f"{flag} is of drawn traffic: the trace has its own." for flag in self._given(OF_DRAWS)
        ]
        found = replace(found, notes=(*found.notes, *unheard))
        if self.rate is not None:
            return at_rate(found, self.rate)
        return found if self.concurrency is None else closed_loop(found, self.concurrency)

    def _given(self, names: Sequence[str]) -> list[str]:
        """The flags among these that are not as they usually are."""
        usual = {field.name: field.default for field in fields(self)}
        changed = (name for name in names if getattr(self, name) != usual[name])
        return [f"--{name.replace('_', '-')}" for name in changed]

    def _drawn(self, seed: int) -> Traffic:
        if self.rate is None and self.concurrency is None:
            raise BadValue(
                "What is sent? Neither --trace, --rate nor --concurrency is given.",
                "As in --rate 2 --prompt lognormal:1000,0.8 --output 200 --requests 500.",
            )
        return synthetic(
            requests=self.requests or _usual(self.concurrency),
            prompt=self.prompt,
            output=256 if self.output is None else self.output,
            rate=self.rate,
            concurrency=self.concurrency,
            arrivals=self.arrivals,
            cv=self.cv,
            shared_prefix=self.shared_prefix,
            prefixes=self.prefixes,
            turns=self.turns,
            think=self.think,
            seed=seed,
        )


def check_read_again(trace: Any) -> None:
    """Nothing where a trace can be read for several runs.

    Raises:
        BadValue: it is standard input.
    """
    if trace == "-":
        raise BadValue("Standard input is read once, and not for several runs.", "Pass a file.")


def _usual(concurrency: int | None) -> int:
    """Requests where none are named: enough that the tails are not those of the beginning."""
    return 1000 if concurrency is None else max(200, 10 * concurrency)


def at_rate(traffic: Traffic, rate: float) -> Traffic:
    """The same requests with the pauses between them stretched to a mean rate.

    Raises:
        BadValue: a rate that is none, or requests that all come at once.
    """
    if not 0 < rate <= 1e9:
        raise BadValue(f"A rate of {rate:g} requests/s is not above 0 and at most 10^9.")
    lasts = float(traffic.arrival_s[-1] - traffic.arrival_s[0])
    if lasts <= 0:
        raise BadValue("All requests of the trace come at once: no rate stretches that.")
    factor = (len(traffic) - 1) / rate / lasts
    return replace(traffic, arrival_s=(traffic.arrival_s - traffic.arrival_s[0]) * factor)


def closed_loop(traffic: Traffic, concurrency: int) -> Traffic:
    """The same requests in their order, so many of them open at a time."""
    import numpy as np

    most = parse_count(concurrency, "--concurrency", MOST_REQUESTS)
    return replace(traffic, arrival_s=np.zeros(len(traffic)), max_in_flight=most)
