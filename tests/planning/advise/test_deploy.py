"""What starts the choice: images of the card's vendor, and a sentence where none is known."""

from __future__ import annotations

import pytest

import kvplan
from kvplan.core.errors import KvplanError
from kvplan.planning.advise.deploy import emit
from kvplan.planning.advise.outcome import Outcome

IMAGES = [
    ("h100-sxm-80gb", "vllm", "vllm/vllm-openai:v"),
    ("mi300x", "vllm", "vllm/vllm-openai-rocm:v"),
    ("h100-sxm-80gb", "sglang", "lmsysorg/sglang:v"),
    ("p100-pcie-16gb", "llama.cpp", "local/llama.cpp:server-cuda"),
    ("radeon-ai-pro-r9700", "llama.cpp", "local/llama.cpp:server-rocm"),
]


def chosen(gpu: str, engine: str) -> Outcome:
    """The best of one card and engine."""
    answer = kvplan.advise("qwen3-8b", users=2, context="4k", gpu=gpu, engine=engine, offline=True)
    assert answer.best is not None
    assert answer.best.outcome is not None
    return answer.best.outcome


@pytest.mark.parametrize(("gpu", "engine", "image"), IMAGES)
@pytest.mark.parametrize("form", ["compose", "k8s"])
def test_the_image_is_of_the_vendor(form: str, gpu: str, engine: str, image: str) -> None:
    """An engine has an image for each vendor; one that is built says from what."""
    text = emit(chosen(gpu, engine), form)

    assert f"image: {image}" in text
    assert ("docker build" in text) == image.startswith("local/")
    assert "HF_TOKEN" in text


@pytest.mark.parametrize(
    ("gpu", "engine"), [("arc-b580", "vllm"), ("mi300x", "sglang"), ("arc-b580", "llama.cpp")]
)
@pytest.mark.parametrize("form", ["compose", "k8s"])
def test_no_image_of_another_vendor_is_written(form: str, gpu: str, engine: str) -> None:
    """Where no image is known a sentence says so, and the command is still given."""
    best = chosen(gpu, engine)

    with pytest.raises(KvplanError, match=f"No container of {engine}"):
        emit(best, form)
    assert emit(best, "command").strip()
