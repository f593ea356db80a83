"""vLLM's starts that failed, as people pass them on: cut, in part, of several ranks."""

from __future__ import annotations

import pytest

import kvplan
from kvplan.logs.failures import failures_of
from kvplan.logs.read import read_log

POOL = (
    "(Worker_PP0 pid=9) INFO 01-11 03:46:46 [gpu_worker.py:358] Available KV cache memory: 9.05 GiB"
)
CORE = "(EngineCore_DP0 pid=8) ERROR 01-11 03:46:48 [core.py:936] "
REFUSED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB. GPU {0} has a total "
    "capacity of 23.57 GiB of which {1} MiB is free."
)
GRAPHS = " with 128.00 MiB allocated in private pools (e.g., CUDA Graphs), and 185.98 MiB"
FRAME = CORE + 'File "/x/vllm/v1/worker/gpu_model_runner.py", line 268, in {0}'


def told(*lines: str) -> list[tuple[str, str]]:
    """The errors of a log."""
    start = read_log("\n".join(lines) + "\n").start
    assert start is not None
    return [(finding.code, finding.message) for finding in failures_of(start)]


ENDS: list[tuple[tuple[str, ...], str]] = [
    ((POOL,), ""),
    ((POOL, CORE + "EngineCore failed to start.", CORE + "Traceback (most recent call"), "failed"),
    ((POOL, "RuntimeError: Engine core initialization failed. See root cause above."), "failed"),
    ((POOL, "Graph capturing finished in 5 secs, took 0.60 GiB"), "started"),
    ((POOL, "init engine (profile, create kv cache, warmup model) took 13.70 s"), "started"),
    ((POOL, "INFO:     Application startup complete."), "started"),
    (("vllm:num_requests_running 0", "vllm:num_requests_waiting 0"), "started"),
    (("[2025-11-30 12:50:10 TP0] KV Cache is allocated. #tokens: 9, K size: 1 GB, V size: 1 GB",),
     "started"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "ended"), ENDS)
def test_how_a_start_ended(lines: tuple[str, ...], ended: str) -> None:
    """A start is said to have failed, or to run, where a line says so and not otherwise."""
    answer = kvplan.explain("\n".join(lines) + "\n", offline=True)

    assert (ended, ended == "failed") == (answer.ended, answer.failed)


def test_a_cause_that_is_not_logged() -> None:
    """It is told as that, only where no other error is, and brings no lever."""
    failed = CORE + "EngineCore failed to start."
    model = "non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct'}"
    answer = kvplan.explain("\n".join((model, POOL, failed, "")), gpu="rtx-4090", offline=True)

    assert (["cause_not_logged"], ()) == (
        [finding.code for finding in answer.findings], answer.suggestions,
    )  # fmt: skip
    error = CORE + "ValueError: No available memory for the cache blocks. Try increasing it"
    assert ["no_cache_memory"] == [code for code, _ in told(failed, error)]


# One error, as terminals, forums and quotations cut it.
CUT: list[tuple[str, ...]] = [
    (
        "ValueError: To serve at least one request with the model's max seq len (196608),",
        "23.25 GiB KV cache is needed, which is larger than the available KV cache memory (22.5 GiB).",
        "Based on the available memory, the estimated maximum model length is 190272.",
    ),
    (
        "▎ ValueError: To serve at least one request with the model's max seq len (196608),",
        "▎ 23.25 GiB KV cache is needed, which is larger than the available KV cache memory",
        "▎ (22.5 GiB). Based on the available memory, the estimated maximum model length is",
        "▎ 190272. ",
    ),
    (
        CORE
        + "ValueError: To serve at least one request with the model's max seq len (196608), (23.",
        "25 GiB KV cache is needed, which is larger than the available KV cach",
        "e memory (22.5 GiB). Based on the available memory, the esti",
        "mated maximum model length is 190272. Try increasing `gpu_memory_utilization`",
        POOL,
    ),
]


@pytest.mark.parametrize("lines", CUT)
def test_an_error_that_is_cut(lines: tuple[str, ...]) -> None:
    """It is read whole, with its estimate."""
    ((code, message),) = told(*lines)

    assert "length_exceeds_pool" == code
    for figure in ("196,608 tokens", "23.25 GiB", "22.50 GiB", "190,272 tokens"):
        assert figure in message


def test_a_refusal_of_memory_that_is_cut() -> None:
    """Free memory that was less than asked for, over two lines."""
    ((code, message),) = told(
        "ValueError: Free memory on device cuda:0 (104.87/121.63 GiB) on startup is",
        "less than desired GPU memory utilization (0.87, 105.82 GiB)",
    )

    assert "memory_taken" == code
    assert "105.82 GiB are asked for and 104.87 GiB of 121.63 GiB are free" in message


NEEDED = (
    "ValueError: To serve at least one request with the models's max seq len (32768), (0.95 GiB KV "
    "cache is needed, which is larger than the available KV cache memory (0.93 GiB). Try increasing"
)
NOT_EVEN = "Not even a short one fits"
WITHOUT_ESTIMATE: list[tuple[str, str]] = [
    # vllm-project/vllm issue 15871: that release estimates nothing
    (
        "Initializing a V1 LLM engine (v0.8.3.dev172+g2b93162f) with config: model='a'",
        "at most 32,078",
    ),
    ("Loading", "at most 32,078"),
    ("Initializing a V1 LLM engine (v0.8.5) with config: model='a'", NOT_EVEN),
    ("INFO 01-01 00:00:00 [kv_cache_utils.py:2400] GPU KV cache size: 1 tokens", NOT_EVEN),
]


@pytest.mark.parametrize(("line", "said"), WITHOUT_ESTIMATE)
def test_no_estimate(line: str, said: str) -> None:
    """That no length fits is told of releases that would have said which does."""
    ((_, message),) = told(line, NEEDED)

    assert said in message


REFUSALS: list[tuple[tuple[str, ...], str]] = [
    ((REFUSED.format(1, 605.88),), "at a stage that no line tells"),
    ((POOL, REFUSED.format(1, 605.88)), "after the cache was made"),
    # V0 prints the blocks of its pool
    (("# cuda blocks: 7299, # CPU blocks: 2048", REFUSED.format(1, 605.88)), "after the cache"),
    # vllm-project/vllm issue 15105
    ((REFUSED.format(1, 605.88) + GRAPHS,), "when graphs had been captured (128 MiB"),
    ((FRAME.format("load_model"), REFUSED.format(1, 605.88)), "while the weights were loaded"),
    ((FRAME.format("profile_run"), REFUSED.format(1, 605.88)), "in the profile, before the cache"),
    ((FRAME.format("profile_run"), FRAME.format("vit_torch_sdpa_wrapper"),
      REFUSED.format(1, 605.88)), "--limit-mm-per-prompt"),
    ((POOL, FRAME.format("_dummy_sampler_run"), REFUSED.format(1, 605.88)), "--max-num-seqs"),
    ((POOL, FRAME.format("capture_model"), REFUSED.format(1, 605.88)), "--enforce-eager"),
    ((REFUSED.format(0, 18995.2),), "More was free than was asked for"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "said"), REFUSALS)
def test_when_an_allocation_failed(lines: tuple[str, ...], said: str) -> None:
    """The stage is told by what stands above the error or in its traceback, and by nothing else."""
    ((_, message),) = told(*lines)

    assert said in message


def test_ranks_that_fail_alike() -> None:
    """Two ranks that were refused the same bytes are one error."""
    of_rank = "(VllmWorker rank={0} pid={0}) ERROR 03-19 07:27:53 [multiproc_executor.py:375] {1}"
    lines = [of_rank.format(n, REFUSED.format(n, free)) for n, free in ((1, 605.88), (0, 594.88))]

    assert ["out_of_memory"] == [code for code, _ in told(*lines)]
    assert 2 == len(told(lines[0], lines[1].replace("1.74", "2.74")))


WORDS: list[tuple[str, str, str]] = [
    (
        (
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. "
            "Please try lowering `max_num_seqs` or `gpu_memory_utilization`"
        ),
        "sampler_exceeds_memory",
        "pass --max-num-seqs below 1024",
    ),
    (
        # vllm-project/vllm issue 56830
        (
            "AssertionError: Error in memory profiling. Initial free memory 82.94 GiB, current free "
            "memory 90.17 GiB. This happens when other processes sharing the same container release"
        ),
        "profile_disturbed",
        "another process freed 7.23 GiB",
    ),
]


@pytest.mark.parametrize(("line", "code", "said"), WORDS)
def test_an_error_s_words(line: str, code: str, said: str) -> None:
    """The cause with its arithmetic."""
    ((found, message),) = told(CORE + line)

    assert code == found
    assert said in message


def test_no_lever_for_an_encoder() -> None:
    """What makes room for a cache makes none for images."""
    lines = (
        "non-default args: {'model': 'Qwen/Qwen2.5-VL-7B-Instruct'}",
        FRAME.format("profile_run"),
        FRAME.format("embed_multimodal"),
        REFUSED.format(0, 20.0),
        "",
    )

    assert () == kvplan.explain("\n".join(lines), gpu="rtx-4090", offline=True).suggestions
