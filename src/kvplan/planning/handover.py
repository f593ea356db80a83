"""Prompts computed on cards of their own (``--prefill-gpu``), their cache sent over a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_bandwidth, parse_count
from kvplan.engines.base import EnginePlan, Node
from kvplan.planning.question import MAX_GPUS, Question, device_named
from kvplan.planning.speed import Workload, estimate
from kvplan.planning.speed.transfer import Disaggregated, disaggregated

if TYPE_CHECKING:
    from kvplan.core.device import Device

RANKS: Final = ("--tp-size", "--pp-size", "--dp-size", "--ep-size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Cards that compute prompts alone, and the link that their cache leaves by."""

    device: Device
    gpus: int
    link_bytes_per_s: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A request's way over both plans; ``here_s`` is its prompt on the decoding cards instead.

    ``fits`` says whether the prefilling cards start and hold one prompt.
    """

    prefill: Prefill
    prefiller: EnginePlan
    prompt: int
    fits: bool
    found: Disaggregated
    here_s: float | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON's ``disaggregated``."""
        found = self.found
        return {
            "gpu": self.prefill.device.name,
            "gpus": self.prefill.gpus,
            "fits": self.fits,
            "link_bytes_per_s": self.prefill.link_bytes_per_s,
            "prefill_s": found.prefill_s,
            "prefill_here_s": self.here_s,
            "moved_bytes": found.moved_bytes,
            "transfer_s": found.transfer_s,
            "ttft_s": found.ttft_s,
            "tpot_s": found.tpot_s,
            "tokens_per_s": found.tokens_per_s,
            "prefills_per_decoder": found.prefills_per_decoder,
            "error": found.error,
        }


def prefill_of(
    gpu: str | None, gpus: int | str | None, link: int | str | None, workload: Workload
) -> Prefill | None:
    """The flags read; None without ``--prefill-gpu``.

    Raises:
        BadQuestion: a card that is not known, no link, or no request to compute.
    """
    if gpu is None:
        for flag, value in (("--prefill-gpus", gpus), ("--link", link)):
            if value is not None:
                raise BadValue(f"{flag} is of --prefill-gpu.", "Name the cards for prompts too.")
        return None
    if link is None:
        raise BadValue("--prefill-gpu sends caches over a link.", "Pass --link, as 50GB/s.")
    if not workload.prompt or not workload.output:
        raise BadValue("--prefill-gpu computes prompts.", "Pass --prompt and --output.")
    rate = parse_bandwidth(link)
    if rate < 1:
        raise BadValue("--link 0 moves nothing.", "Give a rate such as 50GB/s.")
    device, said = device_named(gpu, None)
    count = 1 if gpus is None else parse_count(gpus, "--prefill-gpus", MAX_GPUS)
    return Prefill(device=device, gpus=count, link_bytes_per_s=rate, warnings=said)


def handover(
    question: Question, decoder: EnginePlan, prefill: Prefill, workload: Workload, batch: int
) -> Handover | None:
    """The two plans of a model together; None where one of them cannot be estimated."""
    prompt, output = workload.prompt or 1, workload.output or 1
    node = Node(
        device=prefill.device, gpus=prefill.gpus, memory_bytes=prefill.device.memory_bytes or 0
    )
    asked = replace(
        question.asked, flags=_unranked(question.asked.flags), pool_bytes=None, concurrency=1
    )
    prefiller = question.engine.plan(question.model, node, asked)
    found = disaggregated(
        prefiller,
        decoder,
        prompt=prompt,
        output=output,
        batch=max(1, batch),
        link_bytes_per_s=prefill.link_bytes_per_s,
    )
    if found is None:
        return None
    here = estimate(decoder)
    return Handover(
        prefill=prefill,
        prefiller=prefiller,
        prompt=prompt,
        fits=prefiller.starts and prefiller.capacity(prompt).sequences > 0,
        found=found,
        here_s=here.prefill_s(prompt) if here and here.computes else None,
    )


def _unranked(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags without the decoding cards' layout."""
    return {
        flag: value
        for flag, value in flags.items()
        if not flag.endswith("-parallel-size") and flag not in RANKS
    }
