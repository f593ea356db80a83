"""Questions that contradict themselves end in a sentence; what is unused is said."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadValue

CARD = {"gpu": "h100-sxm-80gb", "engine": "none", "allowance": "8GiB"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"shared_prefix": "32k", "context": "32k"}, "leaves nothing of a context of 32,768"),
        ({"bandwidth": "0GB/s"}, "--bandwidth 0"),
        ({"currency": "\x1b[31m"}, "is not a currency"),
        ({"currency": ""}, "is not a currency"),
        ({"currency": "US DOLLARS"}, "is not a currency"),
        ({"price": float("nan")}, "is not a price"),
        ({"gpus": 0}, "--gpus 0 is not a whole number from 1 to 4,096"),
        ({"gpus": "many"}, "--gpus many"),
        ({"gpus": 1.5}, "--gpus 1.5"),
        ({"gpus": True}, "--gpus True"),
        ({"concurrency": "x"}, "--concurrency x"),
        ({"price": "2"}, "is not a price"),
        ({"gpu_memory": 1.5}, "has no unit"),
    ],
)
def test_fit_refuses(asked: dict[str, Any], said: str) -> None:
    """Each names its flag."""
    with pytest.raises(BadValue, match=said):
        kvplan.fit("llama-3.1-8b", **CARD, **asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"context": ",".join(["4k"] * 40_000)}, "more than 1,024 lengths"),
        ({"context": [1] * 2_000}, "more than 1,024 lengths"),
        ({"requests": 5}, "--requests needs --shared-prefix"),
        ({"requests": -1}, "--requests -1"),
        ({"sequences": 1.5}, "--sequences 1.5"),
        ({"context": 1.5}, "is not a number of tokens"),
        ({"kv_dtype": None}, "is not a cache format"),
        ({"assume": "half"}, "Known: full"),
        ({"set": 5}, "--set takes keys"),
        ({"set": {5: 1}}, "--set takes keys"),
        ({"output": 5}, "--output needs --prompt"),
    ],
)
def test_size_refuses(asked: dict[str, Any], said: str) -> None:
    """Each names its flag."""
    with pytest.raises(BadValue, match=said):
        kvplan.size("llama-3.1-8b", **asked)


@pytest.mark.parametrize("model", [None, 5, b"x", []])
def test_what_is_no_model(model: Any) -> None:
    """A program may pass anything."""
    with pytest.raises(BadValue, match="model"):
        kvplan.size(model)


def test_digits_are_a_number() -> None:
    """As an address of the page has them."""
    assert 8 * 131_072 == kvplan.size("llama-3.1-8b", sequences="8").bytes(1)


@pytest.mark.parametrize(
    ("model", "unused"),
    [("llama-3.1-8b", True), ("whisper-large-v3", False), ("google-t5/t5-small", False),
     ("llama-3.2-11b-vision", False)],
)  # fmt: skip
def test_an_encoder_that_is_not_there(model: str, unused: bool) -> None:
    """A length that changes nothing is told so."""
    found = kvplan.size(model, encoder_tokens=100).warnings

    assert unused == any("--encoder-tokens is unused" in text for text in found)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"max_num_seqs": 4, "concurrency": 8},
            "8 are to run at once, and --max-num-seqs 4 (flag)",
        ),
        ({"max_model_len": "32k", "context": "32k"}, "--context as 32,768."),
        ({"context": "200k"}, "204,800 tokens is longer than --max-model-len 131,072"),
        ({"engine": "sglang", "max_running_requests": 2, "concurrency": 3}, "lets 2."),
    ],
)
def test_what_stops_more_is_named(asked: dict[str, object], said: str) -> None:
    """An engine's own limit, not the pool, which has room."""
    found = kvplan.fit("llama-3.1-8b", gpu="h200", **{"context": "8k"} | asked)

    assert not found.fits
    assert said in (found.reason or "")


def test_an_engine_that_a_card_is_too_old_for_is_told() -> None:
    found = kvplan.fit("llama-3.1-8b", gpu="v100-sxm-32gb", max_model_len=2048, context="2k")

    assert any("needs compute capability 7.5" in said for said in found.warnings)


@pytest.mark.parametrize(
    ("gpu", "gpus", "told"),
    [("h200", 8, False), ("h200", 16, True), ("gb10", 2, True), ("gb200", 64, False)],
)
def test_more_cards_than_a_host_has_are_told(gpu: str, gpus: int, *, told: bool) -> None:
    found = kvplan.fit("deepseek-v3", gpu=gpu, gpus=gpus, engine="sglang", context="8k")

    assert told == any("goes over a network" in said for said in found.warnings)


def test_an_acceptance_without_drafts_says_nothing() -> None:
    found = kvplan.fit("llama-3.1-8b", gpu="h200", acceptance=0.5)

    assert "--acceptance says nothing: the engine is not started with drafts." in found.warnings


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("gpu", [None, "cpu", "t4", "mi300x"])
def test_a_device_that_may_serve_is_not_doubted(gpu: str | None, engine: str) -> None:
    found = kvplan.fit("llama-3.1-8b", gpu=gpu, gpu_memory="40GiB", engine=engine, context="8k")

    assert not any("planned as if it ran" in said for said in found.warnings)
