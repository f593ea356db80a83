"""The estimate as ``fit`` shows it: a decode step, a prefill, a closed loop where one is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.step import Knot
from kvplan.core.units import format_seconds, parse_tokens
from kvplan.engines.base import EnginePlan
from kvplan.planning.speed.estimate import Estimate, estimate
from kvplan.planning.speed.growth import overtakes, saturates
from kvplan.planning.speed.serving import Served
from kvplan.planning.speed.speculation import Drafting, drafted, drafting_of
from kvplan.planning.speed.steps import DECODING


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Tokens of each request's prompt and of its answer, and the acceptance of drafted tokens."""

    prompt: int | None = None
    output: int | None = None
    acceptance: float | None = None

    @property
    def context(self) -> int | None:
        """Tokens of a request at its end; None where they are not said."""
        if self.prompt is None and self.output is None:
            return None
        return (self.prompt or 1) + (self.output or 0)


NO_WORKLOAD: Final = Workload()
UNKNOWN_PEAK: Final = (
    "How long a prompt takes is not estimated: no source says what this card computes a second. "
    "Name it as one of your own with its tflops (docs/settings.md)."
)


def workload_of(
    prompt: int | str | None, output: int | str | None, acceptance: float | None
) -> Workload:
    """The values read.

    Raises:
        BadValue: a length of nothing, an output without a prompt, no probability.
    """
    tokens = [None if text is None else parse_tokens(text) for text in (prompt, output)]
    for flag, found in zip(("--prompt", "--output"), tokens, strict=True):
        if found is not None and found < 1:
            raise BadValue(f"{flag} 0 is no request.", "Give a length such as 1k.")
    if tokens[1] is not None and tokens[0] is None:
        raise BadValue("--output without --prompt says nothing of a request.", "Give both.")
    if acceptance is not None and not (
        isinstance(acceptance, int | float) and 0 <= acceptance <= 1
    ):
        raise BadValue(
            f"--acceptance {str(acceptance)[:20]} is not the probability that a draft is accepted.",
            "Give a share between 0 and 1, as 0.7.",
        )
    return Workload(prompt=tokens[0], output=tokens[1], acceptance=acceptance)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedEstimate:
    """Of ``batch`` sequences over all ranks, each of ``context`` tokens, ``prompt`` of them asked.

    ``served`` is what clients see of a closed loop, None where no lengths were asked or prompts
    cannot be estimated.
    """

    batch: int
    context: int
    prompt: int
    estimate: Estimate
    drafting: Drafting | None
    served: Served | None

    @property
    def each(self) -> int:
        """Sequences of one rank."""
        return -(-self.batch // self.estimate.ranks)

    @property
    def decode_step_s(self) -> float:
        """A step of one rank; with drafts, one that drafts and checks."""
        cost = self.estimate.cost
        stepping = cost if self.drafting is None else drafted(cost, self.drafting)
        return stepping.decode_s(self.each, self.context)

    @property
    def tokens_per_s_per_sequence(self) -> float:
        """Tokens that one sequence gains in a second of decoding."""
        gained = self.drafting.tokens_a_step if self.drafting else 1.0
        return gained / self.decode_step_s

    @property
    def prefill_s(self) -> float | None:
        """A prompt of the asked length that has a rank to itself; None where what the card computes
        a second is not known.
        """
        return self.estimate.prefill_s(self.prompt) if self.estimate.computes else None

    def explanation(self) -> list[str]:
        """The arithmetic, a sentence a line."""
        found, cost, each = self.estimate, self.estimate.cost, self.each
        reading = sum(group.seconds((self.context,), ()) for group in cost.attention)
        told = format_seconds
        step = (
            f"A rank's step of {each:,} × {self.context:,} tokens: {told(cost.fixed_s)} launches, "
            f"messages and the head + {told(cost.linear_s(each))} weights + {each:,} × "
            f"({told(cost.sequence_s)} a sequence + {told(reading)} its cache) = "
            f"{told(cost.decode_s(each, self.context))}."
        )
        of = (
            "such a measurement is"
            if found.source.startswith("measured")
            else ("nine of ten measurements of models that no fit had seen are")
        )
        band = f"{found.source}; {of} within a factor of {1 + found.error:.2f}."
        lines = [step, band]
        if not found.computes:
            lines.append(UNKNOWN_PEAK)
        if self.drafting:
            lines.append(
                f"{self.drafting.tokens} drafts of which each is accepted with "
                f"{self.drafting.acceptance:g} bring {self.drafting.tokens_a_step:.2f} tokens a "
                f"step, which takes {format_seconds(self.decode_step_s)}."
            )
        if self.served:
            order = "before" if found.batching.apart else "between"
            lines.append(
                f"Closed loop: {self.served.batch:,.0f} run at once; each client's prompt goes "
                f"{order} decode steps, which makes {format_seconds(self.served.tpot_s)} a token."
            )
            if not found.batching.apart:
                lines.append(
                    "Lengths are taken to vary about the asked ones: clients of equal ones come in "
                    "waves and wait longer for their first tokens, which kvplan simulate steps "
                    "through."
                )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The contract's ``estimate`` object."""
        found = self.estimate
        cost = found.cost
        shown: dict[str, Any] = {
            "decode_step_s": self.decode_step_s,
            "tokens_per_s_per_sequence": self.tokens_per_s_per_sequence,
            "tokens_per_s": self.tokens_per_s_per_sequence * self.batch,
            "prefill_s": self.prefill_s,
            "error": found.error,
            "calibrated": found.calibrated,
            "source": found.source,
            "cache_overtakes_batch": overtakes(cost, self.context),
            "saturates_batch": saturates(cost, self.context),
        }
        if self.drafting:
            shown["drafting"] = {
                "tokens": self.drafting.tokens,
                "acceptance": self.drafting.acceptance,
                "tokens_per_step": self.drafting.tokens_a_step,
            }
        if self.served:
            shown |= {
                "tpot_s": self.served.tpot_s,
                "ttft_s": self.served.ttft_s,
                "queue_s": self.served.queue_s,
                "tokens_per_s": self.served.tokens_per_s,
                "running": self.served.batch,
            }
        return shown


def speed_estimate(
    plan: EnginePlan, bandwidth: int | None, batch: int, workload: Workload
) -> SpeedEstimate | None:
    """The estimate of a plan; None without a batch, a bandwidth or known weights.

    A plan that does not fit is estimated as if it did: all of the batch runs.
    """
    found = estimate(plan, bandwidth) if batch else None
    if found is None:
        return None
    drafting = drafting_of(plan, workload.acceptance)
    served = None
    if workload.prompt and workload.output and found.computes:
        held = plan.capacity(workload.prompt + workload.output).sequences
        using = found
        if drafting is not None:
            using = _stretched(found, drafting)
        served = using.closed_loop(
            prompt=workload.prompt, output=workload.output, clients=batch, capacity=held or batch
        )
    return SpeedEstimate(
        batch=batch,
        context=plan.asked.context,
        prompt=workload.prompt or plan.asked.context,
        estimate=found,
        drafting=drafting,
        served=served,
    )


def _stretched(found: Estimate, drafting: Drafting) -> Estimate:
    """The same with steps that are counted by the tokens that they bring.

    A step of a sequence brings several tokens: a token costs its part of the step, and a prompt
    what it always did.
    """
    cost, gained = drafted(found.cost, drafting), drafting.tokens_a_step
    plain = found.cost
    knots = tuple(
        Knot(new.tokens, new.seconds / gained if new.tokens <= DECODING[-1] else old.seconds)
        for new, old in zip(cost.linear, plain.linear, strict=True)
    )
    return replace(
        found,
        cost=replace(
            cost,
            fixed_s=cost.fixed_s / gained,
            sequence_s=cost.sequence_s / gained,
            linear=knots,
            attention=tuple(
                replace(group, read_s=group.read_s / gained) for group in cost.attention
            ),
        ),
    )
