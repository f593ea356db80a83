"""``explain``: each error has its cause and a lever that fits; figures follow; two logs compare."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadFile, UnknownName
from kvplan.core.units import GIB
from kvplan.planning.explain import ExplainAnswer


def log(*lines: str, version: str = "0.19.0", **given: Any) -> str:
    """A start of vLLM with these settings and lines."""
    return "\n".join(
        [
            f"(APIServer pid=1) INFO 11-30 12:00:00 [utils.py:1] vLLM API server version {version}",
            f"(APIServer pid=1) INFO 11-30 12:00:00 [utils.py:2] non-default args: {given!r}",
            *(f"(EngineCore pid=2) INFO 11-30 12:00:00 [core.py:3] {line}" for line in lines),
            "",
        ]
    )


def refit(answer: ExplainAnswer, text: str, pool: int | None) -> kvplan.FitAnswer:
    """A suggestion asked again from outside, on the logged pool where it does not change it."""
    assert answer.predicted is not None
    question, model = answer.predicted.question, answer.start.last("model")
    flags: dict[str, Any] = {k: v for k, v in question.asked.flags.items() if v is not True}
    switches = {k: True for k, v in question.asked.flags.items() if v is True}
    words = text.split()
    changed = dict(zip(words[::2], words[1::2], strict=False)) if len(words) > 1 else {text: True}
    named = {
        k.removeprefix("--").replace("-", "_"): v for k, v in (flags | switches | changed).items()
    }
    ranks = int(named.get("tensor_parallel_size", 1)) * int(named.get("data_parallel_size", 1))
    length = int(named.get("max_model_len", question.asked.context))
    return kvplan.fit(
        LLAMA["model"] if model is None else str(model.value),
        gpu=question.node.device.name if question.node.device.name != "given" else None,
        gpu_memory=question.node.memory_bytes if question.node.device.name == "given" else None,
        free_memory=question.node.free_bytes,
        gpus=ranks,
        engine_version=question.asked.version,
        context=min(length, question.asked.context),
        kv_pool=pool,
        **named,
    )


LLAMA = {"model": "meta-llama/Llama-3.1-8B-Instruct"}
TOO_LONG = (
    "ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB "
    "KV cache is needed, which is larger than the available KV cache memory (4.89 GiB). Based on "
    "the available memory, the estimated maximum model length is 40048. Try increasing it"
)
FAILURES: list[tuple[str, str, str, str, dict[str, Any]]] = [
    (
        "length_exceeds_pool",
        log(TOO_LONG, **LLAMA, max_model_len=131072),
        "16.00 GiB of cache on each card, and 4.89 GiB are left: 11.11 GiB short",
        "--max-model-len 40032",
        {"gpu": "rtx-4090"},
    ),
    (
        "length_exceeds_pool",
        log(
            "ValueError: The model's max seq len (29000) is larger than the maximum number of "
            "tokens that can be stored in KV cache (23648). Try increasing it",
            **LLAMA,
            max_model_len=29000,
            version="0.6.6",
        ),
        "the pool holds 23,648 tokens (1,478 blocks of 16)",
        "--max-model-len 23648",
        {"gpu": "rtx-3090"},
    ),
    (
        "no_cache_memory",
        log(
            "Model loading took 61.03 GiB memory and 4.05 seconds",
            "Available KV cache memory: -2.14 GiB",
            "ValueError: No available memory for the cache blocks. Try increasing it",
            model="Qwen/Qwen3-32B",
            gpu_memory_utilization=0.8,
            max_model_len=8192,
        ),
        "weights 61.03 GiB",
        "--gpu-memory-utilization 0.95",
        {"gpu": "h100-sxm-80gb"},
    ),
    (
        "memory_taken",
        log(
            "ValueError: Free memory on device cuda:1 (60.33/79.19 GiB) on startup is less than "
            "desired GPU memory utilization (0.95, 75.23 GiB). Decrease GPU memory utilization",
            **LLAMA,
            max_model_len=8192,
            gpu_memory_utilization=0.95,
        ),
        "other processes hold 18.86 GiB. End them, or ask for at most 0.76 of the card",
        "--gpu-memory-utilization 0.75",
        {},
    ),
    (
        "out_of_memory",
        log(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a "
            "total capacity of 47.40 GiB of which 20.00 MiB is free. Including non-PyTorch memory",
            model="Qwen/Qwen3-32B",
            max_model_len=8192,
        ),
        "failed at a stage that no line tells",
        "--tensor-parallel-size 2",
        {"gpu": "l40s"},
    ),
    (
        "states_exceed_pool",
        log(
            "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (856). Each",
            model="Qwen/Qwen3.5-27B",
            max_num_seqs=1024,
            max_model_len=8192,
            version="0.20.0",
        ),
        "1,024 are asked for and the pool has 856 blocks",
        "--max-num-seqs 856",
        {"gpu": "h200"},
    ),
    (
        "length_exceeds_model",
        log(
            "ValueError: User-specified max_model_len (8192) is greater than the derived "
            "max_model_len (max_position_embeddings=2048 or model_max_length=None in model's "
            "config.json).",
            model="microsoft/phi-2",
            max_model_len=8192,
        ),
        "8,192 tokens are asked for and the model's config declares 2,048",
        "--max-model-len 2048",
        {"gpu": "h100-sxm-80gb"},
    ),
]


@pytest.mark.parametrize(
    ("code", "text", "said", "lever", "beside"),
    FAILURES,
    ids=[f"{f[0]}-{n}" for n, f in enumerate(FAILURES)],
)
def test_a_failure_has_its_cause_and_a_lever(
    code: str, text: str, said: str, lever: str, beside: dict[str, Any]
) -> None:
    """The error is named with its arithmetic, and the plainest lever comes with what it gives."""
    answer = kvplan.explain(text, offline=True, **beside)
    errors = [finding for finding in answer.findings if finding.severity == "error"]

    assert [code] == [finding.code for finding in errors]
    assert said in errors[0].message
    suggested = [f"{row.flag} {row.value}".strip() for row in answer.suggestions]
    assert lever in suggested
    assert all(row.fits for row in answer.suggestions)


@pytest.mark.parametrize(
    ("code", "text", "said", "lever", "beside"),
    FAILURES,
    ids=[f"{f[0]}-{n}" for n, f in enumerate(FAILURES)],
)
def test_fit_confirms_the_lever(
    code: str, text: str, said: str, lever: str, beside: dict[str, Any]
) -> None:
    """The same start with the lever, asked of ``fit`` on the pool it then has, fits."""
    answer = kvplan.explain(text, offline=True, **beside)
    assert answer.predicted is not None
    row = next(r for r in answer.suggestions if f"{r.flag} {r.value}".strip() == lever)
    gib = row.effect.partition(" tokens in ")[2].partition(" GiB")[0]
    pool = round(float(gib) * GIB) + GIB // 200

    assert refit(answer, lever, pool).fits


def test_what_is_not_enough_is_said() -> None:
    """A lever that a person would try and that leaves the start failing is told with figures."""
    answer = kvplan.explain(FAILURES[2][1], gpu="h100-sxm-80gb", offline=True)
    told = [f.message for f in answer.findings if f.code == "lever_not_enough"]

    assert "--kv-cache-dtype fp8 alone is not enough: -2.14 GiB are left for the cache." in told


def test_the_format_that_figures_tell() -> None:
    """A cost of half the model's own is an fp8 cache, and the plan is made with it."""
    text = log(TOO_LONG.replace("16.0 GiB", "8.0 GiB"), **LLAMA, max_model_len=131072)
    answer = kvplan.explain(text, gpu="rtx-4090", offline=True)

    assert "fp8" in [row.value for row in answer.inferred if row.name == "kv_format"]
    assert any("--kv-cache-dtype fp8" in warning for warning in answer.warnings)


RUNNING = (
    "Model loading took 14.99 GiB memory and 4.05 seconds",
    "Available KV cache memory: 50.00 GiB",
    "GPU KV cache size: 409,600 tokens",
    "Maximum concurrency for 8,192 tokens per request: 50.00x",
)


def test_a_start_that_runs() -> None:
    """Ledger, tokens and concurrency stand beside the plan, equal where the digits allow."""
    answer = kvplan.explain(log(*RUNNING, **LLAMA, max_model_len=8192), gpu="h100", offline=True)
    rows = {row.name: row for row in answer.differences}

    assert (409600, 409600) == (rows["kv_tokens"].logged, rows["kv_tokens"].predicted)
    assert 50.0 == rows["max_concurrency"].predicted
    assert "within the prediction's error" in rows["weights"].why
    assert {"bytes_per_token": 131072} == {
        row.name: row.value for row in answer.inferred if row.name == "bytes_per_token"
    }
    assert all(row.fits for row in answer.suggestions)


def test_hidden_layers() -> None:
    """A pool that holds fewer tokens by whole layers has a draft's, or padding."""
    lines = [line.replace("409,600", "397,184").replace("50.00x", "48.48x") for line in RUNNING]
    answer = kvplan.explain(log(*lines, **LLAMA, max_model_len=8192), gpu="h100", offline=True)

    assert [1] == [row.value for row in answer.inferred if row.name == "hidden_layers"]


def test_copies_of_heads() -> None:
    """More ranks than KV heads keep each head several times."""
    lines = [line.replace("409,600", "3,276,800").replace("50.00x", "400.00x") for line in RUNNING]
    text = log(*lines, **LLAMA, max_model_len=8192, tensor_parallel_size=16)
    answer = kvplan.explain(text, gpu="h100", offline=True)

    assert [2] == [row.value for row in answer.inferred if row.name == "kv_head_copies"]


def test_two_logs() -> None:
    """What changed between two starts, and the terms that moved the pool."""
    first = log(*RUNNING, **LLAMA, max_model_len=8192, gpu_memory_utilization=0.9)
    second = first.replace("50.00 GiB", "40.00 GiB").replace("0.9}", "0.8}")
    answer = kvplan.explain(first, second, gpu="h100", offline=True)

    assert answer.compared is not None
    assert (("gpu_memory_utilization", 0.9, 0.8),) == answer.compared.settings
    assert answer.compared.message.startswith(
        "The pool went from 50.00 GiB to 40.00 GiB (−10.00 GiB): gpu_memory_utilization 0.9 → 0.8"
    )


def test_what_the_log_does_not_name() -> None:
    """Without a model or a card facts are answered, and what is missing is asked for."""
    answer = kvplan.explain("GPU KV cache size: 1,024 tokens\n")

    assert (None, ()) == (answer.predicted, answer.suggestions)
    assert ["The log names no model: pass --model to hold it against a prediction."] == [
        *answer.warnings
    ]


def test_a_model_that_is_not_known() -> None:
    """A name in the log that is not known leaves the facts; one that is given is an error."""
    text = log(*RUNNING, model="nobody/nothing-7b", max_model_len=8192)
    answer = kvplan.explain(text, gpu="h100", offline=True)

    assert answer.predicted is None
    assert any("--model" in warning for warning in answer.warnings)
    with pytest.raises(UnknownName):
        kvplan.explain(text, model="nobody-nothing", gpu="h100", offline=True)


def test_no_path_of_a_log_is_opened(tmp_path: Any) -> None:
    """A log is a stranger's text: a path in it is only a name."""
    (tmp_path / "config.json").write_text("{}")
    answer = kvplan.explain(log(*RUNNING, model=str(tmp_path)), gpu="h100", offline=True)

    assert answer.predicted is None


def test_nothing_in_it() -> None:
    """A text without an engine's lines is refused in a sentence."""
    with pytest.raises(BadFile, match="nothing that an engine prints"):
        kvplan.explain("one\ntwo\n")


CONTRADICTIONS = [
    "Free memory on device (80.0/79.0 GiB) on startup.\nAvailable KV cache memory: 500.00 GiB",
    "GPU KV cache size: 999,999,999,999,999,999 tokens\nAvailable KV cache memory: 0.00 GiB",
    "Available KV cache memory: -999999999999 GiB\nGPU KV cache size: 0 tokens",
    "Maximum concurrency for 0 tokens per request: 0.00x\nGPU KV cache size: 0 tokens",
    (
        "# GPU blocks: 0, # CPU blocks: 0\nmax seq len (0) is larger than the maximum number of "
        "tokens that can be stored in KV cache (0)"
    ),
    (
        "To serve at least one request with the model's max seq len (0), (0.0 GiB KV cache is "
        "needed, "
        "which is larger than the available KV cache memory (-5.0 GiB)."
    ),
    "Model loading took 99999999999999999999 GiB and 4 seconds\nGPU KV cache size: 5 tokens",
]


@pytest.mark.parametrize("text", CONTRADICTIONS)
def test_absurd_figures(text: str) -> None:
    """A log that contradicts itself or has absurd figures is answered all the same."""
    answer = kvplan.explain(log(*text.split("\n"), **LLAMA), gpu="h100", offline=True)

    assert "explain" == answer.to_dict()["verb"]


def test_a_contradiction_is_told() -> None:
    """A pool that is larger than the card is no run's."""
    answer = kvplan.explain(log(*CONTRADICTIONS[0].split("\n"), **LLAMA), gpu="h100", offline=True)

    assert "contradiction" in [finding.code for finding in answer.findings]
