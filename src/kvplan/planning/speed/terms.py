"""The sum of a step: times at the peaks over the shares that are reached, and what comes on top.

    linear     dense ∨ products  +  experts ∨ products  +  link          ∨ is the slower of both
    fixed      a step + layers + messages + the head
    sequence   states + logits + sampling
    attention  reading ∨ computing for a context token; computing for a pair

Every function takes numbers or arrays of them: the calibration asks of thousands of rows at once
what a plan asks of one.
"""

from __future__ import annotations

from math import inf
from typing import Any

from kvplan.planning.speed.ideal import Ideal, IdealLook
from kvplan.planning.speed.rates import Rates


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
    distinct = 1 - (1 - ideal.drawn_share) ** group
    experts = slower(
        ideal.experts_read_s * distinct / rates.share_experts,
        ideal.experts_token_s * group / rates.share_products,
        rates.sharpness,
    )
    return dense + experts + ideal.link_token_s * each / rates.share_link + rates.token_s * tokens


def fixed_s(ideal: Ideal, rates: Rates) -> Any:
    """What a step costs however few tokens it has, beside its weights."""
    return (
        rates.step_s
        + ideal.layers * rates.layer_s
        + ideal.mixed * rates.mixed_s
        + ideal.messages * rates.message_s
        + ideal.head_read_s / rates.share_read
    )


def sequence_s(ideal: Ideal, rates: Rates) -> Any:
    """Of each sequence."""
    logits = ideal.head_token_s / rates.share_dense
    return rates.sequence_s + (ideal.state_s / rates.share_cache + logits) / ideal.stages


def read_s(look: IdealLook, rates: Rates, stages: Any) -> Any:
    """Of one context token of a decoding sequence."""
    reading = look.read_s / rates.share_cache
    return slower(reading, look.decode_s / rates.share_attention, rates.sharpness) / stages


def pair_s(look: IdealLook, rates: Rates, stages: Any) -> Any:
    """Of one query and key pair of a prefill."""
    return look.pair_s / rates.share_attention / stages
