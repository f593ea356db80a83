"""How published servers were started, and which of them count: rows of each source."""

from __future__ import annotations

from typing import Any

import pytest

from tools.speed_recipes import flags
from tools.speed_rows import Row, in_blocks, is_validation, rows


def row(**asked: Any) -> Row:
    """The first usable row of a description."""
    return next(
        row for row in rows()[0] if all(getattr(row, key) == value for key, value in asked.items())
    )


LOOP = {"kind": "loop", "source": "aic-silicon"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            {"group": "Qwen3 32B", "engine": "vllm", "prompt": 1024.0, "concurrency": 8},
            {"--max-num-seqs": "8", "--max-num-batched-tokens": "2532"},
        ),
        (
            {"group": "Qwen3 32B", "engine": "sglang", "version": "0.5.1", "concurrency": 16},
            {"--max-running-requests": "16", "--max-prefill-tokens": "2524"},
        ),
        (
            {"group": "Llama 3 8B", "engine": "sglang", "prompt": 1000.0, "concurrency": 160},
            {
                "--max-running-requests": "160",
                "--max-prefill-tokens": "2500",
                "--enable-mixed-chunk": True,
            },
        ),
        (
            {"group": "Llama 3 8B", "engine": "tensorrt-llm", "prompt": 4096.0, "concurrency": 8},
            {
                "--max-batch-size": "8",
                "--max-num-tokens": "5604",
                "--disable-overlap-scheduler": True,
            },
        ),
        (
            {"group": "Llama 3 70B", "engine": "vllm", "device": "b200"},
            {"--max-num-batched-tokens": "8192", "--async-scheduling": True},
        ),
        (
            {"group": "Llama 3 70B", "engine": "vllm", "device": "h200"},
            {"--max-num-batched-tokens": "8192"},
        ),
        (
            {"group": "gpt-oss 120B", "engine": "vllm", "concurrency": 4},
            {
                "--max-num-batched-tokens": "8192",
                "--max-num-seqs": "4",
                "--async-scheduling": True,
            },
        ),
    ],
    ids=lambda asked: str(asked.get("group", "")) + str(asked.get("engine", "")),
)
def test_flags_are_those_of_the_scripts(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """InferenceX's scripts, and what aiconfigurator's generator writes."""
    assert expected == flags(row(**LOOP | asked))


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [
        ({"group": "Qwen3 32B", "engine": "vllm"}, False),
        ({"group": "Llama 3 70B", "engine": "vllm"}, True),
        ({"group": "Kimi K2", "engine": "vllm"}, True),
        ({"group": "Qwen3.5 397B-A17B", "engine": "sglang"}, True),
    ],
    ids=str,
)
def test_lengths_are_drawn_where_they_were(asked: dict[str, Any], drawn: bool) -> None:
    """A file of comparisons with InferenceX's figures has InferenceX's lengths."""
    found = row(**LOOP | asked)

    assert drawn == found.drawn
    assert drawn != is_validation(found)


@pytest.mark.parametrize(
    ("asked", "blocks"),
    [
        ({"group": "Qwen3 32B", "engine": "tensorrt-llm", "quantization": "fp8"}, True),
        ({"group": "Qwen3.5 397B-A17B", "quantization": "fp8"}, True),
        ({"group": "Llama 3 70B", "quantization": "fp8"}, False),
        ({"source": "trtllm-perf-overview", "group": "Qwen3 235B-A22B"}, False),
    ],
    ids=str,
)
def test_fp8_is_in_blocks_where_its_publisher_stores_it_so(
    asked: dict[str, Any], blocks: bool
) -> None:
    """Qwen's own releases are; copies with a scale a tensor are not."""
    assert blocks == in_blocks(row(**asked))
