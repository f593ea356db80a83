"""What facts alone tell: findings by their codes, inference by its arithmetic."""

from __future__ import annotations

import pytest

from kvplan.core.units import GIB
from kvplan.logs.facts import Start
from kvplan.logs.failures import failures_of
from kvplan.logs.findings import find
from kvplan.logs.infer import infer, two_lengths
from kvplan.logs.ledger import ledger_of
from kvplan.logs.read import read_log
from kvplan.logs.versions import likely_version

POOL = "GPU KV cache size: 1,000 tokens\nMaximum concurrency for 500 tokens per request: 2.00x"


def start_of(text: str) -> Start:
    start = read_log(text + "\n").start
    assert start is not None
    return start


FINDINGS: list[tuple[str, list[str]]] = [
    (POOL, []),
    (POOL.replace("2.00x", "9.00x"), ["tokens_not_concurrency"]),
    ("GPU KV cache size: 1,000 tokens\nUsing max model len 5000", ["pool_below_length"]),
    ("Add 3 padding layers, may waste at most 6.25% KV cache memory", ["padding_layers"]),
    ("Add 1 padding layers, may waste at most 1.25% KV cache memory", []),
    ("Hybrid KV cache manager is disabled for this hybrid model", ["hybrid_manager_disabled"]),
    (
        "Setting attention block size to 1072 tokens to ensure that attention page size",
        ["large_attention_block"],
    ),
    ("Using fp8 data type to store kv cache.", ["kv_dtype_resolved"]),
    (
        (
            "non-default args: {'model': 'a', 'kv_cache_dtype': 'fp8'}\nUsing fp8 data type to store kv "
            "cache."
        ),
        [],
    ),
    (
        (
            "(Worker_TP0 pid=1) Available KV cache memory: 9.00 GiB\n"
            "(Worker_TP1 pid=2) Available KV cache memory: 8.00 GiB"
        ),
        ["ranks_differ"],
    ),
    (
        (
            "Free memory on device (60.0/79.0 GiB) on startup. Desired GPU memory utilization is (0.5, "
            "39.5 GiB)."
        ),
        ["others_hold_memory"],
    ),
    (
        "CUDA graph pool memory: 1.73 GiB (actual), 0.28 GiB (estimated), difference: 1.45 GiB",
        ["graph_estimate_off"],
    ),
    (
        (
            "CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). "
            "Consider re-enabling it (the default as of v0.21.0) and increasing "
            "--gpu-memory-utilization from 0.9350 to 0.9595.\n"
            "Estimated CUDA graph memory: 0.58 GiB total"
        ),
        ["graphs_not_reserved"],
    ),
    (
        "Free memory on device (79.0/79.0 GiB) on startup.\nModel loading took 90.0 GiB and 4.0 s",
        ["contradiction"],
    ),
]


@pytest.mark.parametrize(("text", "codes"), FINDINGS, ids=[text[:50] for text, _ in FINDINGS])
def test_findings(text: str, codes: list[str]) -> None:
    """Each thing to know has its code; what is usual has none."""
    assert codes == [finding.code for finding in find(start_of(text))]


MEANINGS = [
    ("vLLM API server version 0.6.6\n# GPU blocks: 100, # CPU blocks: 9", "blocks × tokens"),
    ("vLLM API server version 0.20.0\n" + POOL, "blocks ÷ groups"),
    ("vLLM API server version 0.21.0\n" + POOL, "concurrency × max_model_len"),
    ("INFO 01-01 00:00:00 [kv_cache_utils.py:1319] " + POOL, "blocks ÷ groups"),
    ("INFO 01-01 00:00:00 [kv_cache_utils.py:2400] " + POOL, "concurrency × max_model_len"),
    ("vLLM API server version 0.20.1\n" + POOL, "concurrency × max_model_len"),
]


@pytest.mark.parametrize(("text", "means"), MEANINGS)
def test_what_tokens_mean(text: str, means: str) -> None:
    """The two definitions of vLLM's tokens are told by its version, or by the line that printed."""
    found = {row.name: row.value for row in infer(start_of(text))}

    assert str(found["kv_tokens_means"]).startswith(means)


# Lines of kv_cache_utils.py: of the tokens and of the concurrency, None where it is not printed.
PRINTED: list[tuple[int, int | None, str]] = [
    (566, 569, "0.8.5"),  # vllm-project/vllm 0.8.3, before the oldest that is listed
    (1199, 1204, "0.11.0"),  # builds between 0.11.0 and 0.11.1
    (1708, 1709, "0.20.1"),
    (1710, 1711, "0.21.0"),
    (1710, None, "0.21.0"),
    (1711, 1716, "0.20.0"),
    (1713, 1718, "0.20.0"),  # 0.20.1rc1.dev16
    (1734, 1735, "0.22.0"),
    (2147, 2148, "0.24.0"),
    (2236, 2237, "0.27.0"),
    (2328, 2328, "0.32.0"),
    (2396, 2396, "0.30.0"),
]


@pytest.mark.parametrize(("tokens", "concurrency", "version"), PRINTED)
def test_the_release_that_printed(tokens: int, concurrency: int | None, version: str) -> None:
    """Where the two prints stand tells the release; between releases their distance the side."""
    size, most = POOL.splitlines()
    stamp = "INFO 05-06 07:59:17 [kv_cache_utils.py:{}] {}"
    lines = [stamp.format(tokens, size)]
    lines += [stamp.format(concurrency, most)] if concurrency else []
    likely = likely_version(start_of("\n".join(lines)))

    assert likely is not None
    assert (version, False) == (likely.version, likely.stated)


def test_two_lengths() -> None:
    """A cost of 3 GB and 10 B a token is found from two lengths; not from one."""
    assert (3e9, 10.0) == two_lengths((100, 3e9 + 1000), (500, 3e9 + 5000))
    assert two_lengths((100, 1.0), (100, 2.0)) is None


def test_a_hybrid_s_error_line() -> None:
    """The two lengths of an error line tell the fixed part, where it is more than its digits."""
    text = (
        "To serve at least one request with the model's max seq len (200000), 12.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (8.00 GiB). Based on the "
        "available memory, the estimated maximum model length is 100000."
    )
    found = {row.name: row.value for row in infer(start_of(text))}

    assert (4 * GIB, 100_000) == (
        found["fixed_bytes_per_sequence"], found["fixed_over_slope_tokens"],
    )  # fmt: skip


def test_the_ledger_closes() -> None:
    """What the budget has beside the stated terms is a term, so that they sum to it."""
    text = (
        "the current vLLM instance can use total_gpu_memory (24.00GiB) x gpu_memory_utilization "
        "(0.50) = 12.00GiB\nmodel weights take 5.00GiB; non_torch_memory takes 0.50GiB; PyTorch "
        "activation peak memory takes 1.00GiB; the rest of the memory reserved for KV Cache is "
        "5.25GiB."
    )
    terms = {term.name: term.num_bytes / GIB for term in ledger_of(start_of(text))}

    assert {
        "weights": 5.0, "activation_peak": 1.0, "non_torch": 0.5, "unexplained": 0.25,
        "kv_pool": 5.25,
    } == terms  # fmt: skip


# vllm-project/vllm issue 14452, whose driver prints no rank.
TWO_RANKS = """\
INFO 04-23 14:48:44 [worker.py:287] model weights take 10.80GiB; non_torch_memory takes 0.33GiB; \
PyTorch activation peak memory takes 1.01GiB; the rest of the memory reserved for KV Cache is 14.52GiB.
(VllmWorkerProcess pid=12897) INFO 04-23 14:48:44 [worker.py:287] the current vLLM instance can use \
total_gpu_memory (31.37GiB) x gpu_memory_utilization (0.85) = 26.66GiB
(VllmWorkerProcess pid=12897) INFO 04-23 14:48:44 [worker.py:287] model weights take 10.30GiB; \
non_torch_memory takes 0.33GiB; PyTorch activation peak memory takes 1.77GiB; the rest of the memory \
reserved for KV Cache is 14.26GiB."""


def test_the_ledger_is_of_one_rank() -> None:
    """The terms are those of the rank whose pool decides, and close; the other is the driver."""
    start = start_of(TWO_RANKS)
    terms = {term.name: round(term.num_bytes / GIB, 2) for term in ledger_of(start)}

    assert {
        "weights": 10.3, "activation_peak": 1.77, "non_torch": 0.33, "unexplained": 0.0,
        "kv_pool": 14.26,
    } == terms  # fmt: skip
    (finding,) = find(start)
    assert "pid 12897 has 14.26 GiB for the cache and the driver 14.52 GiB" in finding.message


def test_an_unknown_failure_is_quoted() -> None:
    """A failure without words of its own is shown as it stands."""
    start = start_of("# GPU blocks: 1, # CPU blocks: 1")
    start.failures.append(type(start_of("No available memory for the cache blocks").failures[0])(
        "something_else", 1, None, "RuntimeError: no"
    ))  # fmt: skip

    assert ["It failed: RuntimeError: no"] == [f.message for f in failures_of(start)]
