"""The settings of TensorRT-LLM's own benchmark, as its build/tuning.py chooses them."""

from __future__ import annotations

import pytest

from tests.planning.speed.plans import plan
from tools.speed_bench import requests_of, settings, sizes_of
from tools.speed_data import data
from tools.speed_names import MIXTURES, PAGES
from tools.speed_rows import Row


def row(prompt: int, output: int, stages: int = 1) -> Row:
    """A published row of maximum throughput with other lengths."""
    found = next(case.row for case in data().cases if case.row.kind == "queued")
    return found._replace(prompt=float(prompt), output=float(output), pp=stages)


@pytest.mark.parametrize(
    ("held", "asked", "batch", "tokens"),
    [
        (5000, row(128, 128), 4096, 8192),
        (447, row(128, 2048), 512, 2048),
        (237, row(1000, 1000), 256, 2048),
        (482, row(2048, 128), 512, 9216),
        (10, row(128, 4096), 64, 2048),
        (44, row(20000, 2000), 64, 20064),
        (1000, row(1000, 1000, stages=2), 512, 2048),
    ],
)
def test_settings(held: int, asked: Row, batch: int, tokens: int) -> None:
    """By what the cache holds and the lengths, in steps of its own, with room for a whole prompt.

    Of a pipeline the batch is one stage's.
    """
    assert (batch, tokens) == settings(held, asked)


@pytest.mark.parametrize(
    ("asked", "requests"),
    [
        (row(128, 128), 30000),
        (row(20000, 2000), 1000),
        (row(1024, 8192), 1500),
        (row(1024, 32768), 1000),
        (row(3, 7), None),
    ],
)
def test_requests_of_a_run(asked: Row, requests: int | None) -> None:
    """The tables of the pages of 1.0 and 1.2; lengths that stand in neither have none."""
    assert requests == requests_of(asked)


@pytest.mark.parametrize(
    ("largest", "sizes"),
    [
        (64, (1, 2, 4, 8, 16, 32, 64)),
        (896, (1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 896)),
        (4096, (1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 1024, 2048, 4096)),
    ],
)
def test_captured_sizes(largest: int, sizes: tuple[int, ...]) -> None:
    """The page's list up to the largest batch, which is captured too."""
    found = plan("Qwen/Qwen3-8B", "h200", 1, "tensorrt-llm", **{"--max-batch-size": largest})

    assert sizes == sizes_of(found)


def test_mixtures_of_the_pages_have_attention_ranks() -> None:
    """On several cards each has sequences and whole experts of its own; one card is one rank."""
    pages = [case.row for case in data().cases if case.row.source == PAGES]
    mixtures = {(r.gpus > r.pp, r.attention_dp, r.experts_dealt) for r in pages if _mixed(r)}

    assert mixtures == {(True, True, True), (False, False, False)}
    assert not any(r.attention_dp for r in pages if not _mixed(r))


def _mixed(found: Row) -> bool:
    return found.group in MIXTURES


def test_gpt_oss_on_hopper_has_a_cache_of_16_bits() -> None:
    """As the page's options say: fp8 where it is Blackwell."""
    pages = [case.row for case in data().cases if case.row.source == PAGES]
    kept = {(r.device[:1], r.kv_dtype) for r in pages if r.group.startswith("gpt-oss")}

    assert kept == {("h", "auto"), ("b", "fp8"), ("g", "fp8")}
