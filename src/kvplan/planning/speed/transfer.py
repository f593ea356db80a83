"""Prefill on one kind of card and decoding on another, the cache moved over a link between them."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.base import EnginePlan
from kvplan.planning.speed.estimate import estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Disaggregated:
    """One request's way: prefill, move, decode; and how many prefill ranks feed one decoding plan.

    ``moved_bytes`` are one request's, over the ranks that keep it; ``transfer_s`` is of one rank's
    part, as each has a link of its own. ``prefills_per_decoder`` is the number of prefill plans
    that keep the decoding plan's batch full.
    """

    prefill_s: float
    moved_bytes: int
    transfer_s: float
    ttft_s: float
    tpot_s: float
    tokens_per_s: float
    prefills_per_decoder: float
    error: float


def disaggregated(
    prefiller: EnginePlan,
    decoder: EnginePlan,
    *,
    prompt: int,
    output: int,
    batch: int,
    link_bytes_per_s: int,
) -> Disaggregated | None:
    """Two plans of one model; None where one of them cannot be estimated.

    A prefill takes one prompt at a time; layers are sent when they are done, so all but the last
    of the transfer hides behind the prefill where the link is the faster.
    """
    first, second = estimate(prefiller), estimate(decoder)
    if first is None or second is None or link_bytes_per_s < 1 or not first.computes:
        return None
    prefill = first.prefill_s(prompt)
    part = decoder.sequence_bytes(prompt)  # of each rank that keeps the request
    ranks = max(1, decoder.node.gpus // second.ranks)
    transfer = part / link_bytes_per_s
    layers = max(1, len(decoder.model.blocks))
    step = second.decode_s(batch, prompt + output // 2)
    arriving = batch / (max(1, output) * step)
    return Disaggregated(
        prefill_s=prefill,
        moved_bytes=part * ranks,
        transfer_s=transfer,
        ttft_s=prefill + max(transfer - prefill, transfer / layers) + step,
        tpot_s=step,
        tokens_per_s=batch / step,
        prefills_per_decoder=arriving * prefill / first.ranks,
        error=max(first.error, second.error),
    )
