"""What the tokens of each request are found by: its own ids, or those of the turn after it."""

from __future__ import annotations

import numpy as np

from kvplan.simulation.fast.compiled import entry
from kvplan.simulation.fast.layout import Array, Longs, Words
from kvplan.simulation.traffic import Traffic


def name(traffic: Traffic, requests: Array) -> None:
    """Writes down how many tokens of each request are named, and in whose ids."""
    block = max(traffic.hash_block, 1)
    counts = np.diff(traffic.hash_starts)
    named = np.minimum(counts * block, traffic.prompt_tokens).astype(np.int32)
    source = np.arange(len(traffic), dtype=np.int32)
    if len(traffic.hash_ids) and (traffic.after >= 0).any():
        name_answers(traffic.hash_ids, traffic.hash_starts, traffic.prompt_tokens,
                     traffic.output_tokens, traffic.after, block, source, named)  # fmt: skip
    requests["named"], requests["source"] = named, source


def dense(ids: Longs) -> Longs:
    """Small numbers for ids, so that an id and a place in its block are one number."""
    if len(ids) == 0:
        return np.zeros(1, np.int64)
    if ids.min() >= 0 and ids.max() < 1 << 32:
        return np.ascontiguousarray(ids)
    return np.unique(ids, return_inverse=True)[1].astype(np.int64)


@entry
def name_answers(
    ids: Longs, starts: Longs, prompt: Longs, output: Longs,
    after: Longs, block: int, source: Words, named: Words,
) -> None:  # fmt: skip
    """The ids of a successor that lie past a prompt name what was answered to it."""
    for follower in range(len(after)):
        request = after[follower]
        if request < 0:
            continue
        whole = prompt[request] // block
        reach = (prompt[request] + output[request]) // block
        count = min(starts[follower + 1] - starts[follower], reach)
        if count <= whole or starts[request + 1] - starts[request] < whole:
            continue
        same = True
        for at in range(whole):
            same &= ids[starts[follower] + at] == ids[starts[request] + at]
        if same:
            source[request], named[request] = follower, count * block
