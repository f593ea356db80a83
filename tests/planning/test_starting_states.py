"""The states that a start really meets: each a verdict, its arithmetic, what works, the lever.

The texts are tested whole for vLLM and by their parts for the others, as their figures are theirs.
"""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadQuestion, KvplanError

H100 = "h100-sxm-80gb"
LLAMA = "llama-3.1-8b"

VLLM = {
    "weights do not fit": (
        {"model": "qwen3-32b", "gpu": "l4"},
        (
            "The weights take 61.03 GiB of each card, which has 22.49 GiB: loading ends in an "
            "out-of-memory error. Use more cards or a smaller quantisation. The nearest that fits: "
            "--tensor-parallel-size 4."
        ),
    ),
    "length too large": (
        {"model": LLAMA, "gpu": "l4"},
        (
            "To serve at least one request with the model's max seq len (131072), 16.00 GiB KV "
            "cache is needed, which is larger than the available KV cache memory (4.09 GiB). The "
            "estimated maximum model length is 33488: pass --max-model-len 33488 (or auto), raise "
            "--gpu-memory-utilization, or use more cards. The nearest that fits: --max-model-len "
            "32768, or --tensor-parallel-size 2."
        ),
    ),
    "another process on the card": (
        {"model": LLAMA, "gpu": H100, "free_memory": "70GiB"},
        (
            "Free memory on device (69.49/79.18 GiB) on startup is less than desired GPU memory "
            "utilization (0.92, 72.85 GiB). Pass --gpu-memory-utilization 0.87 at most, or end the "
            "other processes. The nearest that fits: --gpu-memory-utilization 0.87."
        ),
    ),
    "another process, weights do not fit beside it": (
        {"model": LLAMA, "gpu": H100, "free_memory": "12GiB"},
        (
            "Free memory on device (11.49/79.18 GiB) on startup is less than desired GPU memory "
            "utilization (0.92, 72.85 GiB). The weights alone take 14.99 GiB: end the other "
            "processes."
        ),
    ),
    "another process, a version that does not look": (
        {"model": LLAMA, "gpu": H100, "free_memory": "70GiB", "engine_version": "0.8.5"},
        (
            "0.9 of 79.18 GiB are 71.26 GiB, and 69.49 GiB are free: vLLM 0.8.5 does not check it "
            "and runs out of memory. Pass --gpu-memory-utilization 0.87 at most, or end the other "
            "processes. The nearest that fits: --gpu-memory-utilization 0.87."
        ),
    ),
}

OTHERS = {
    "sglang: weights do not fit": (
        {"model": "qwen3-32b", "gpu": "l4", "engine": "sglang"},
        ("The weights take 61.02 GiB", "21.64 GiB are free", "--gpus 8"),
    ),
    "sglang: nothing for the cache": (
        {"model": LLAMA, "gpu": "l4", "engine": "sglang"},
        ("--mem-fraction-static 0.684", "Raise it above 0.694", "--gpus 2"),
    ),
    "sglang: another process": (
        {"model": LLAMA, "gpu": H100, "free_memory": "12GiB", "engine": "sglang"},
        ("The weights take 14.96 GiB", "11.15 GiB are free"),
    ),
    "tensorrt-llm: weights do not fit": (
        {"model": "qwen3-32b", "gpu": "l4", "engine": "tensorrt-llm"},
        ("Weights of 61.02 GiB", "leave nothing of the card", "--gpus 8"),
    ),
    "tensorrt-llm: another process": (
        {"model": LLAMA, "gpu": H100, "free_memory": "12GiB", "engine": "tensorrt-llm"},
        ("Weights of 14.96 GiB", "--max-batch-size", "--gpus 4"),
    ),
    "llama.cpp: placed by hand, too large": (
        {"model": "qwen3-32b", "gpu": "l4", "engine": "llama.cpp", "n_gpu_layers": 99,
         "ctx_size": 8192, "context": 4096},
        ("A card needs", "and has 22.49 GiB", "--n-gpu-layers 2"),
    ),
    "llama.cpp: another process": (
        {"model": LLAMA, "gpu": H100, "free_memory": "12GiB", "engine": "llama.cpp",
         "n_gpu_layers": 99, "ctx_size": 8192, "context": 4096},
        ("A card needs", "and has 12 GiB", "--n-gpu-layers"),
    ),
    "transformers: weights do not fit": (
        {"model": "qwen3-32b", "gpu": "l4", "engine": "transformers"},
        ("The weights take 61.02 GiB", "22.49 GiB that a card has free", "--gpus 4"),
    ),
    "none: another process": (
        {"model": LLAMA, "gpu": H100, "free_memory": "12GiB", "engine": "none"},
        ("The weights take 14.96 GiB of the free 12 GiB", "--gpus 2"),
    ),
}  # fmt: skip

REFUSED = {
    "heads not divisible": (
        {"gpu": H100, "gpus": 3, "tensor_parallel_size": 3},
        (
            "meta-llama/Llama-3.1-8B has 32 query heads, which --tensor-parallel-size 3 does not "
            "divide."
        ),
        "The nearest that do: 2 or 4.",
    ),
    "unknown GPU": (
        {"gpu": "h1000"},
        "No device is named 'h1000'.",
        (
            "Did you mean h100-sxm-80gb? See kvplan gpus, or give --gpu-memory and --bandwidth "
            "without a name."
        ),
    ),
    "Apple without its RAM": (
        {"gpu": "apple-m2-pro", "engine": "llama.cpp"},
        (
            "What Apple M2 Pro gives its GPU depends on the RAM installed: 8 GB gives 5.33 GiB, 16 "
            "GB gives 11.84 GiB, 24 GB gives 17.76 GiB, 32 GB gives 24.96 GiB, 36 GB gives 28.08 "
            "GiB, 48 GB gives 37.44 GiB, 64 GB gives 51.84 GiB, 128 GB gives 107.5 GiB, 512 GB "
            "gives 464 GiB (macOS's default)."
        ),
        (
            "Name it, as apple-m2-pro-64gb, or pass --gpu-memory; sudo sysctl iogpu.wired_limit_mb "
            "raises the limit."
        ),
    ),
    "Strix Halo without what it is given": (
        {"gpu": "strix-halo", "engine": "llama.cpp"},
        (
            "What Strix Halo (Radeon 8060S, 128 GB) gives its GPU depends on the firmware and the "
            "driver: half of the RAM by default (61.41 of 122.82 GiB were seen)."
        ),
        "Pass it with --gpu-memory; the kernel's amdgpu.gttsize raises it.",
    ),
    "a model over slices": (
        {"gpu": "h100-sxm-80gb-mig-3g-40gb", "gpus": 2},
        (
            "H100 SXM5 MIG 3g.40gb is a MIG slice: slices cannot exchange data card to card, so a "
            "model is not split over several of them."
        ),
        "Ask of one; each can serve a copy.",
    ),
    "a slice that there is not": (
        {"gpu": "h100-sxm-80gb-mig-3g-41gb"},
        "H100 SXM5 has no MIG profile 3g.41gb.",
        "It has 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb.",
    ),
    "more free than there is": (
        {"gpu": "l4", "free_memory": "30GiB"},
        "--free-memory 30 GiB is more than the card's 22.49 GiB.",
        "",
    ),
}

SLICES = [
    ("h100-sxm-80gb-mig-3g-40gb", 39.38, 1675),
    ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 39.38, 1675),
    ("a100-sxm-80gb mig 1g.10gb", 9.5, 254.875),
    ("h200-mig-1g-18gb", 16.0, 600),
    ("apple-m4-max-128gb", 107.52, 546),
]


def _fit(model: Any = LLAMA, **asked: Any) -> kvplan.FitAnswer:
    return kvplan.fit(model, **{"engine": "vllm", **asked})


@pytest.mark.parametrize(("asked", "expected"), VLLM.values(), ids=VLLM)
def test_what_vllm_says(asked: dict[str, Any], expected: str) -> None:
    """The verdict is no, with the term that breaks it, its arithmetic and what works."""
    answer = _fit(**asked)

    assert (False, 0, expected) == (answer.fits, answer.sequences, answer.reason)


def test_no_memory_for_blocks() -> None:
    """A budget that weights and activations exceed names what was left of it and the levers."""
    answer = _fit(gpu="l4", gpu_memory_utilization=0.7)

    assert not answer.fits
    assert (answer.reason or "").startswith("No available memory for the cache blocks: -")
    assert "--gpu-memory-utilization 0.7 requests" in (answer.reason or "")
    assert "The nearest that fits: --tensor-parallel-size 4." in (answer.reason or "")


@pytest.mark.parametrize(("asked", "parts"), OTHERS.values(), ids=OTHERS)
def test_what_others_say(asked: dict[str, Any], parts: tuple[str, ...]) -> None:
    """Each engine's verdict has its own arithmetic."""
    answer = _fit(**asked)

    assert not answer.fits
    assert [part for part in parts if part not in (answer.reason or "")] == []


@pytest.mark.parametrize(("asked", "message", "hint"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_planned(asked: dict[str, Any], message: str, hint: str) -> None:
    """A start that there cannot be is a question to put right, with the nearest that can."""
    with pytest.raises(KvplanError) as caught:
        _fit(**asked)

    assert (message, hint) == (caught.value.message, caught.value.hint or "")
    assert isinstance(caught.value, BadQuestion)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "none"])
def test_unified_memory_is_shared(engine: str) -> None:
    """On GB10 the system uses the same memory; saying what is free settles it."""
    silent = _fit(gpu="gb10", engine=engine)
    told = _fit(gpu="gb10", engine=engine, free_memory="115GiB")

    assert any("shares its memory with the system" in text for text in silent.warnings)
    assert not any("shares its memory" in text for text in told.warnings)
    assert "other_processes" in [term.name for term in told.plan.ledger]


@pytest.mark.parametrize(("name", "gib", "gbs"), SLICES)
def test_a_part_of_a_device(name: str, gib: float, gbs: float) -> None:
    """A slice has what its driver prints, and its memory slices' part of the bandwidth."""
    device = _fit("qwen3-0.6b", gpu=name, engine="none").to_dict()["device"]

    assert (gib, gbs) == (
        round(device["memory_bytes"] / (1 << 30), 2),
        device["bandwidth_bytes_per_s"] / 1e9,
    )


def test_slices_are_not_proposed_in_pairs() -> None:
    """What does not fit on a slice is not split over two."""
    answer = _fit("qwen3-32b", gpu="h100-sxm-80gb-mig-3g-40gb")

    assert not answer.fits
    assert not any("parallel-size" in lever.change for lever in answer.levers)


def test_an_engine_without_kernels_says_so() -> None:
    """Apple's GPUs are not served by vLLM."""
    answer = _fit("qwen3-0.6b", gpu="apple-m4-max-64gb")

    assert any("vllm has no kernels for Apple M4 Max" in text for text in answer.warnings)
