"""Prefix hits of a model with full and sliding-window layers, request by request, as vLLM has them.

``hybrid_prefix_hits.json``: vLLM 0.32.0's KVCacheManager, one group of each kind, a window of 128.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import pytest

from kvplan.simulation.paged.cache import PagedCache
from kvplan.simulation.paged.request import Request
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from kvplan.simulation.replay import keys_of
from tests.simulation.paged.scenarios import ORACLE

EXPECTED = json.loads((ORACLE / "hybrid_prefix_hits.json").read_text(encoding="utf-8"))
# Segments of each prompt (stream, start, length), and the tokens generated after it.
PROMPTS: dict[str, tuple[list[tuple[str, int, int]], int]] = {
    "A: P+200": ([("p", 0, 1000), ("a", 0, 200)], 0),
    "B: P+200": ([("p", 0, 1000), ("b", 0, 200)], 0),
    "C: P+200": ([("p", 0, 1000), ("c", 0, 200)], 0),
    "D: P+200": ([("p", 0, 1000), ("d", 0, 200)], 0),
    "X 1024": ([("x", 0, 1024)], 0),
    "X again": ([("x", 0, 1024)], 0),
    "X+1": ([("x", 0, 1024), ("x1", 0, 1)], 0),
    "X+500": ([("x", 0, 1024), ("x500", 0, 500)], 0),
    "Y 1500, 40 generated": ([("y", 0, 1500)], 40),
    "Y[:1000]+100 (branch inside)": ([("y", 0, 1000), ("e", 0, 100)], 0),
    "same branch point": ([("y", 0, 1000), ("f", 0, 100)], 0),
}


def cache(retention: int | None) -> PagedCache:
    return PagedCache(
        PagedSettings(
            num_blocks=2000,
            groups=(
                CacheGroup(kind="full", block_size=16),
                CacheGroup(kind="window", block_size=16, window=128),
            ),
            max_num_seqs=1,
            max_num_batched_tokens=16384,
            max_model_len=8192,
            retention=retention,
        )
    )


class Served:
    """Requests one after the other through one cache, in chunks of 8192."""

    def __init__(self, retention: int | None) -> None:
        self.cache = cache(retention)
        self.index: dict[Hashable, int] = {}

    def serve(self, segments: list[tuple[str, int, int]], generated: int = 0) -> list[Any]:
        """Hit, junction and the blocks held at the end, as the record has them."""
        prompt = sum(length for _, _, length in segments)
        keys = keys_of([*segments, (f"out{len(self.index)}", 0, generated)], 16, self.index)
        request = Request(number=0, num_prompt=prompt, num_output=64, keys=keys)
        hit = self.cache.lookup(request)
        request.junction = hit.junction
        assert self.cache.allocate(request, prompt - hit.num_tokens, hit)
        request.num_computed = prompt
        for _ in range(generated):
            request.num_generated += 1
            assert self.cache.allocate(request, 1)
            request.num_computed += 1
        held = [sum(not b.is_null for b in table.blocks) for table in request.tables]
        self.cache.free(request)
        self.cache.check_integrity([])
        return [hit.num_tokens, hit.junction, held]


@pytest.mark.parametrize(("name", "retention"), [("0", 0), ("None", None), ("512", 512)])
def test_hits_junctions_and_blocks(name: str, retention: int | None) -> None:
    """Under each retention: 0 keeps ends and junctions, None everything, 512 one tail in 512."""
    served = Served(retention)

    assert EXPECTED[name] == [[row, served.serve(*PROMPTS[row])] for row, _ in EXPECTED[name]]


@pytest.mark.parametrize(("name", "retention"), [("chat0", 0), ("chatNone", None)])
def test_turns_of_a_chat(name: str, retention: int | None) -> None:
    """Each turn is the one before and 150 tokens more."""
    served = Served(retention)
    found = []
    for turn in range(5):
        length = 600 + 150 * turn
        found.append([length, *served.serve([("chat", 0, length)])[:2]])

    assert EXPECTED[name] == found
