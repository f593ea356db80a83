"""Copies of a plan behind a router, prompts and answers apart or not, and how they are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_bandwidth, parse_count
from kvplan.engines.base import EnginePlan
from kvplan.engines.vllm.plan import VllmPlan
from kvplan.simulation.fast.kept import tell_first_time
from kvplan.simulation.loop import Loop
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.planned import Planned, Rules, planned
from kvplan.simulation.router import router_of
from kvplan.simulation.servers.base import Batch, Request, Server
from kvplan.simulation.step_time import StepTime
from kvplan.simulation.traffic import Traffic

MOST_COPIES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """``count`` copies behind ``router``; ``prefill`` more that compute prompts alone.

    ``link_bytes_per_s`` is what a prompt's cache is handed over with.
    """

    plan: EnginePlan
    planned: Planned
    count: int
    router: str
    prefill: int = 0
    link_bytes_per_s: int | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the plan is left out."""
        return self.planned.warnings

    def to_dict(self) -> dict[str, Any]:
        """How many there are and who chooses."""
        return {
            "count": self.count,
            "router": self.router,
            "prefill": self.prefill,
            "link_bytes_per_s": self.link_bytes_per_s,
        }

    def run(
        self,
        traffic: Traffic,
        timed: StepTime,
        progress: Callable[[int], None],
        step_by_step: bool = False,
    ) -> tuple[Outcome, dict[str, float]]:
        """What becomes of a traffic, and figures that this engine alone has.

        One copy of vLLM is run by the compiled engine, anything else a step at a time. Requests are
        sent as long before their arrival as the server needs to take them in.
        """
        traffic = replace(traffic, way=timed.way)
        outcome, extras = self._run(traffic, timed, progress, step_by_step)
        under_way = timed.way.fixed_s + timed.way.token_s * traffic.prompt_tokens
        return replace(outcome, arrived_s=outcome.arrived_s - under_way), extras

    def alone(self) -> Copies:
        """One copy of them, without the others."""
        return replace(self, count=1, prefill=0)

    def _run(
        self,
        traffic: Traffic,
        timed: StepTime,
        progress: Callable[[int], None],
        step_by_step: bool,
    ) -> tuple[Outcome, dict[str, float]]:
        cost = timed.cost
        if self.planned.paged is not None and self.count == 1 and not self.prefill:
            tell_first_time()
            from kvplan.simulation.fast.engine import simulate as compiled

            outcome = compiled(
                traffic,
                self.planned.paged,
                cost,
                ahead=self.planned.ahead,
                step_by_step=step_by_step,
                progress=progress,
            )
            return outcome, {}
        copies = [self.planned.make() for _ in range(self.count)]
        first = [self.planned.make() for _ in range(self.prefill)]

        def seconds(batch: Batch) -> float:
            return cost.seconds(batch.contexts, batch.chunks)

        loop = Loop(
            traffic,
            first or copies,
            router_of(self.router),
            seconds,
            decoders=copies if first else (),
            decode_router=router_of("least-loaded"),
            moved_s=self._moved_s,
            skipping=None if step_by_step else cost,
            ahead=self.planned.ahead,
            progress=progress,
        )
        return loop.run(), _extras([*first, *copies])

    def _moved_s(self, request: Request) -> float:
        """What a prompt's cache is under way: one rank's part over its own link."""
        return self.plan.sequence_bytes(request.prompt) / (self.link_bytes_per_s or 1)


def copies_of(
    plan: EnginePlan,
    rules: Rules,
    *,
    replicas: int,
    router: str,
    prefill: int = 0,
    link: int | str | None = None,
) -> Copies:
    """The copies of a start, and those that the start itself has (data parallel).

    Raises:
        BadQuestion: a number that is none, a router that is not known, a plan without servers.
    """
    found = planned(plan, rules)
    count = parse_count(replicas, "--replicas", MOST_COPIES) * plan.replicas
    router_of(router)
    rate = rules.link_bytes_per_s if link is None else parse_bandwidth(link)
    if link is not None and not prefill:
        raise BadValue("--link is between copies.", "Pass --prefill-replicas too.")
    if prefill:
        prefill = parse_count(prefill, "--prefill-replicas", MOST_COPIES) * plan.replicas
        if not isinstance(plan, VllmPlan):
            raise BadValue(f"Prompts apart are simulated of vllm, not of {plan.engine}.")
        if not rate:
            raise BadValue("How a cache is handed over is not known.", "Pass --link 50GB/s.")
    return Copies(
        plan=plan,
        planned=found,
        count=count,
        router=router,
        prefill=prefill,
        link_bytes_per_s=rate if prefill else None,
    )


def _extras(servers: list[Server]) -> dict[str, float]:
    """Means of the engines' own figures, and what came over links."""
    found: dict[str, float] = {}
    for server in servers:
        for name, value in server.extras().items():
            found[name] = found.get(name, 0.0) + value / len(servers)
    moved = sum(server.counts.moved_s for server in servers)
    if moved:
        found["host_hit_tokens"] = float(sum(s.counts.host_hit_tokens for s in servers))
        found["moved_s"] = moved
    return found
