"""Scrapes of every engine and age to figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.logs.metrics.reading import MOST_SAMPLES, Reading, read_metrics
from tests.logs.metrics import scrapes


def reading(text: str) -> Reading:
    found = read_metrics(text.splitlines())
    assert found is not None
    return found


FIGURES: dict[str, dict[str, float | None]] = {
    "VLLM": {
        "kv_usage": 0.95, "running_requests": 7, "waiting_requests": 12, "preemptions": 7,
        "finished_requests": 70, "prefix_hit_tokens": 430, "prefix_queried_tokens": 1000,
        "generation_tokens": 25000,
    },
    "VLLM_V0": {"kv_usage": 0.5, "hit_rate_gauge": 0.8, "prefix_hit_tokens": None},
    "VLLM_0_8": {"prefix_hit_tokens": 20, "prefix_queried_tokens": 50},
    "SGLANG": {
        "running_requests": 7, "kv_usage": 0.28, "window_usage": 0.75, "kv_tokens": 100000,
        "prefix_hit_tokens": 4000, "preemptions": 48, "max_model_len": 32768,
    },
    "LLAMACPP": {
        "waiting_requests": 3, "kv_usage": None, "longest_sequence_tokens": 980,
        "prefix_hit_tokens": 400,
    },
    "LLAMACPP_OLD": {"kv_usage": 0.63, "used_tokens": 1234, "running_requests": 2},
    "TGI": {
        "waiting_requests": 5, "reserved_tokens": 2048, "prompt_tokens": 12800,
        "prefix_hit_tokens": None,
    },
    "RAY": {"running_requests": 3, "kv_usage": 0.4},
}  # fmt: skip
HIT_RATES = {
    "VLLM": 0.43, "VLLM_V0": None, "VLLM_0_8": 0.4, "SGLANG": 0.5, "LLAMACPP": 0.4,
    "LLAMACPP_OLD": None, "TGI": None, "RAY": None,
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name: str) -> None:
    """Counts of replicas add up, ranks of one do not; shares are the fullest's."""
    found = reading(getattr(scrapes, name))

    assert FIGURES[name] == {figure: found.get(figure) for figure in FIGURES[name]}


@pytest.mark.parametrize("name", HIT_RATES)
def test_hits_are_counted(name: str) -> None:
    """Hits over queries from the start on; a gauge is none, and neither is speculation."""
    assert HIT_RATES[name] == reading(getattr(scrapes, name)).hit_rate


def test_blocks_and_tokens() -> None:
    """Releases whose HELP line says so counted blocks: the facts are named so."""
    start = kvplan.explain(scrapes.VLLM_0_8.encode()).start

    assert (50, None) == tuple(
        start.number(f"prefix_queried_{unit}") for unit in ("blocks", "tokens")
    )
    assert "40.0% of 50 blocks of prompts" in codes(scrapes.VLLM_0_8)["prefix_hits"].message


def test_the_smallest_pool_decides() -> None:
    """Each replica states its own; labels that are None state nothing."""
    found = reading(scrapes.VLLM)

    pools = [found.pool(name) for name in ("kv_tokens", "num_gpu_blocks", "max_concurrency")]
    assert [98304, 6144, 2.4] == pools
    assert found.pool("available_kv_bytes") is None


@pytest.mark.parametrize(
    ("name", "engine"),
    [("VLLM", "vllm"), ("SGLANG", "sglang"), ("LLAMACPP", "llama.cpp"), ("TGI", "tgi")],
)
def test_explain_takes_a_scrape(name: str, engine: str) -> None:
    """As any log: facts with their lines, findings, what follows."""
    answer = kvplan.explain(getattr(scrapes, name).encode())

    assert engine == answer.start.engine
    assert answer.start.number("running_requests")
    assert answer.to_dict()["facts"][1]["line"] > 1


def codes(text: str) -> dict[str, Any]:
    return {finding.code: finding for finding in kvplan.explain(text.encode()).findings}


def test_findings_of_a_full_server() -> None:
    """Full and waiting; taken back; the hit rate of counters beside the gauge's."""
    found = codes(scrapes.VLLM)

    assert {"pool_full", "preempted", "prefix_hits"} <= set(found)
    assert "43.0%" in found["prefix_hits"].message
    assert "(1.0%) is of its last steps" in codes(scrapes.SGLANG)["prefix_hits"].message


def test_findings_of_limits() -> None:
    """A queue beside an empty pool is no matter of the cache."""
    text = scrapes.VLLM.replace(" 0.95", " 0.10")

    assert "queue_without_need" in codes(text)


@pytest.mark.parametrize(
    ("name", "code"),
    [("VLLM_V0", "hit_rate_is_a_gauge"), ("LLAMACPP", "no_kv_usage"), ("TGI", "no_hit_rate"),
     ("LLAMACPP_OLD", "no_hit_rate"), ("TGI", "no_preemptions")],
)  # fmt: skip
def test_what_is_not_exported(name: str, code: str) -> None:
    """Said, so that nobody looks for it."""
    assert code in codes(getattr(scrapes, name))


def test_inferred_figures() -> None:
    """Tokens in use, and a pool of blocks where no tokens are stated."""
    rows = {row.name: row.value for row in kvplan.explain(scrapes.VLLM.encode()).inferred}
    old = {row.name: row.value for row in kvplan.explain(scrapes.VLLM_V0.encode()).inferred}

    assert (round(0.95 * 98304), 0.43) == (rows["used_kv_tokens"], rows["prefix_hit_rate"])
    assert 5691 * 16 == old["kv_tokens"]


def test_samples_are_bounded() -> None:
    """A scrape of a million series keeps what a server has."""
    line = 'vllm:num_requests_running{{engine="{0}"}} 1.0'
    found = reading("\n".join(line.format(n) for n in range(MOST_SAMPLES + 10)))

    assert MOST_SAMPLES == found["running_requests"]
    assert "10 samples" in found.notes[0]


REAL = Path(__file__).parents[2] / "reference" / "logs"


def test_a_real_llamacpp() -> None:
    """Two prompts of 17 tokens: 16 of the second were there; computed tokens are counted apart."""
    start = kvplan.explain(REAL / "llamacpp-b11549-metrics.txt").start

    assert (18, 16) == (start.number("prefix_computed_tokens"), start.number("prefix_hit_tokens"))
    assert 20 == start.number("longest_sequence_tokens")


def test_a_real_vllm() -> None:
    """The pool as its labels state it: what the log prints of it, and its bytes."""
    answer = kvplan.explain(REAL / "vllm-0.32.0-metrics.txt")
    start = answer.start

    assert (55356, 2730, 128) == tuple(
        start.number(name) for name in ("kv_tokens", "num_gpu_blocks", "block_size")
    )
    assert (1 << 30, 27.02970297029703) == (
        start.number("available_kv_bytes"), start.number("max_concurrency")
    )  # fmt: skip
    assert 102 == start.number("prefix_queried_tokens")


def test_labels_that_are_no_numbers() -> None:
    """A figure of the pool that is a word states nothing."""
    found = reading(scrapes.VLLM.replace('num_gpu_blocks="6400"', 'num_gpu_blocks="NaN6400"'))

    assert 6144 == found.pool("num_gpu_blocks")
