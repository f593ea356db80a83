"""Altered lines of every engine but vLLM: an answer or a refusal in words, in bounded time and memory."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.core.errors import KvplanError
from kvplan.logs.facts import MOST_OF_A_NAME
from kvplan.logs.read import read_log
from tests.logs import test_llamacpp_variants as llamacpp
from tests.logs import test_sglang_variants as sglang
from tests.logs import test_trtllm_reports as trtllm
from tests.logs.metrics import scrapes

LINES = [
    *llamacpp.KV, *llamacpp.OTHERS, *llamacpp.BUFFERS,
    *(sglang.PREFIX + line for line in sglang.VARIANTS),
    *(f"[TensorRT-LLM][INFO] {line}" for line in trtllm.VARIANTS),
    ('time=2025 level=INFO source=server.go:175 msg=offload library=cuda layers.model=62 '
    'layers.offload=5 memory.available="[23.3 GiB]" memory.required.kv="9.5 GiB"'),
    "llama_model_loader: loaded meta data with 33 key-value pairs from a.gguf",
    "srv    load_model: loading draft model 'b.gguf'",
    *scrapes.VLLM.splitlines(), *scrapes.SGLANG.splitlines(),
]  # fmt: skip
NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
ABSURD = (
    "9" * 400,
    "-1",
    "1e999",
    "NaN",
    "0",
    "18446744073709551616",
    "",
    "\x00",
    "\x1b[31m",
    "é",
    "٣",
)


def answered(data: bytes) -> None:
    """An explanation, or an error for people."""
    with suppress(KvplanError):
        kvplan.explain(data, offline=True).to_dict()


@st.composite
def altered(draw: st.DrawFn) -> str:
    """A line with a piece cut out, put in, or swapped for something absurd."""
    line = draw(st.sampled_from(LINES))
    start = draw(st.integers(0, len(line)))
    end = draw(st.integers(start, min(len(line), start + 12)))
    piece = draw(st.one_of(st.sampled_from(ABSURD), st.text(max_size=6), st.just(line[:40])))
    return line[:start] + piece + line[end:]


@settings(max_examples=150, deadline=None)
@given(st.lists(altered(), min_size=1, max_size=12))
def test_altered_lines(lines: list[str]) -> None:
    """Any lines in any order."""
    answered("\n".join(lines).encode("utf-8", "surrogatepass"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=2, max_size=30))
def test_engines_among_each_other(lines: list[str]) -> None:
    """Lines of several engines in one file."""
    answered("\n".join(lines).encode())


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("piece", ABSURD)
def test_absurd_numbers(line: str, piece: str) -> None:
    """Each figure of a line in place of a number that none can be."""
    answered(NUMBER.sub(lambda _: piece, line).encode())


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("repeated", [" ", "9", "=", "(", "MiB ", "a="])
def test_no_line_takes_long(line: str, repeated: str) -> None:
    """A pattern that tries again and again would be found by repetition."""
    middle = len(line) // 2
    for text in (line + repeated * 3000, line[:middle] + repeated * 3000 + line[middle:]):
        began = time.perf_counter()
        read_log(text.encode())
        assert time.perf_counter() - began < 2


def test_a_long_run_keeps_little() -> None:
    """A line a thousand times, and a thousand ranks."""
    line = sglang.PREFIX + "max_total_num_tokens={}"
    start = read_log("\n".join(line.format(n) for n in range(1000)).encode()).start
    assert start is not None
    assert (MOST_OF_A_NAME, 999) == (len(list(start.said("kv_tokens"))), start.number("kv_tokens"))

    pool = "[2025-11-30 12:50:10 TP{}] KV Cache is allocated. #tokens: 5, KV size: 1.00 GB"
    ranks = read_log("\n".join(pool.format(n) for n in range(9000)).encode()).start
    assert ranks is not None
    assert len(ranks.facts) < 9000


def test_a_log_that_contradicts_itself() -> None:
    """A pool larger than its card is said to be so."""
    lines = (
        (
            "[TensorRT-LLM][INFO] Memory usage when calculating max tokens in paged kv cache: total: 79.10 "
            "GiB, available: 70.48 GiB"
        ),
        (
            "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 630.44 GiB for max tokens in paged KV cache "
            "(259840)."
        ),
    )
    findings = kvplan.explain("\n".join(lines).encode()).findings

    assert "contradiction" in {finding.code for finding in findings}
