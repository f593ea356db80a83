"""The sum of a step: times at the peaks over the shares that are reached, and what comes on top.

    linear     dense ∨ products  +  experts ∨ products  +  moved  +  link    ∨ is the slower of both
               experts by the fullest rank, moved where it passes the layers' fixed part
    fixed      a step + layers + messages + the head
    sequence   states + logits + sampling
    attention  reading ∨ computing for a context token; computing for a pair

Every function takes numbers or arrays of them: the calibration asks of thousands of rows at once
what a plan asks of one.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final

from kvplan.planning.speed.ideal import Ideal, IdealLook
from kvplan.planning.speed.rates import Rates

LAUNCHING: Final = 4.0  # the sharpness between launching and computing


def slower(one: Any, other: Any, sharpness: Any) -> Any:
    """The larger of two times, rounded up where they are near: (aᵖ + bᵖ)^(1/p)."""
    if sharpness == inf:
        return max(one, other)
    return (one**sharpness + other**sharpness) ** (1 / sharpness)


def linear_s(ideal: Ideal, rates: Rates, tokens: Any) -> Any:
    """All that grows with new tokens alone; a stage sees its part of them at a time."""
    each = tokens / ideal.stages
    group = each * ideal.group
    dense = slower(
        ideal.dense_read_s / rates.share_read,
        ideal.dense_token_s * each / rates.share_dense,
        rates.sharpness,
    )
    drawing = 1 + (group - 1) * rates.spread
    distinct = 1 - (1 - ideal.drawn_share) ** drawing
    experts = slower(
        ideal.experts_read_s * distinct / rates.share_experts,
        ideal.experts_token_s * group / rates.share_products,
        rates.experts_sharpness,
    ) * (1 + ideal.favoured * rates.uneven)
    moved = rates.passes * (ideal.dense_moved_s * each + ideal.experts_moved_s * group)
    small = ideal.layers * rates.layer_s
    more = slower(moved, small, rates.sharpness) - small
    return dense + experts + more + link_s(ideal, rates, each)


def link_s(ideal: Ideal, rates: Rates, tokens: Any) -> Any:
    """Sums over ranks, once round or twice: twice costs another latency and carries less."""
    once = ideal.link_once_s * tokens / rates.share_link
    twice = ideal.link_twice_s * tokens / rates.share_link + ideal.messages * rates.turn_s
    return (once + twice - abs(once - twice)) / 2  # the lesser, of numbers and of arrays


def prefill_s(ideal: Ideal, rates: Rates, tokens: Any) -> Any:
    """``linear_s`` of a step with prompts in it, whose kernels are launched one by one.

    The step is no faster than its launches, however little each of many ranks has to do. Cards that
    take turns work on several pieces of it at once.
    """
    fixed = fixed_s(ideal, rates)
    launching = (ideal.layers + ideal.mixed) * rates.launch_s
    linear = linear_s(ideal, rates, tokens) * turns(ideal, tokens)
    return slower(fixed + linear, launching, LAUNCHING) - fixed


def turns(ideal: Ideal, tokens: Any) -> Any:
    """What is left of a step's time where k pieces of it pass t cards: (k + t - 1) / (k t)."""
    pieces = (tokens / ideal.piece + 1 + abs(tokens / ideal.piece - 1)) / 2  # 1 at least
    return (pieces + ideal.hops) / (pieces * (ideal.hops + 1))


def fixed_s(ideal: Ideal, rates: Rates) -> Any:
    """What a step costs however few tokens it has, beside its weights."""
    return (
        rates.step_s
        + ideal.layers * rates.layer_s
        + ideal.mixed * rates.mixed_s
        + ideal.messages * rates.message_s
        + ideal.hops * rates.hop_s
        + ideal.head_read_s / rates.share_read
    )


def sequence_s(ideal: Ideal, rates: Rates) -> Any:
    """Of each sequence."""
    logits = ideal.head_token_s / rates.share_dense
    return (rates.sequence_s + ideal.state_s / rates.share_cache + logits) / ideal.stages


def read_s(look: IdealLook, rates: Rates, stages: Any) -> Any:
    """Of one context token of a decoding sequence."""
    reading = look.read_s / rates.share_cache
    return slower(reading, look.decode_s / rates.share_attention, rates.sharpness) / stages


def pair_s(look: IdealLook, rates: Rates, stages: Any) -> Any:
    """Of one query and key pair of a prefill."""
    return look.pair_s / rates.share_attention / stages


def pipeline(ideal: Ideal, rates: Rates) -> Any:
    """How much longer a pipeline takes than its stages' work: each further one waits a little."""
    return 1 + rates.bubble * (ideal.stages - 1)
