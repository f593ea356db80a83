"""What is said of --quantization, and that a command has the flags that no rule reads."""

from __future__ import annotations

import pytest

import kvplan
from kvplan.engines.weight_words import said_of_word
from kvplan.readers.open_model import open_model

PLAIN, STORED, MIXTURE = "llama-3.1-8b", "qwen2.5-7b-instruct-awq", "qwen3-30b-a3b"


@pytest.mark.parametrize(
    ("model", "engine", "word", "said"),
    [
        (PLAIN, "vllm", "", None),
        (PLAIN, "vllm", "fp8", None),
        (PLAIN, "vllm", "fp8-per-block", None),
        (PLAIN, "vllm", "foo", "no way to store weights that kvplan knows: they are planned"),
        (PLAIN, "vllm", "awq_marlim", "did you mean awq_marlin?"),
        (PLAIN, "vllm", "nvfp4", "does not make nvfp4 out of the 16 bits"),
        (PLAIN, "vllm", "compressed-tensors", "leaves it to the checkpoint"),
        (PLAIN, "vllm", "mxfp4", "stores experts alone"),
        (MIXTURE, "vllm", "mxfp4", "does not make mxfp4"),
        (STORED, "vllm", "awq", None),
        (PLAIN, "sglang", "fp8", None),
        (PLAIN, "sglang", "w4a16", "does not make w4a16"),
        (PLAIN, "tensorrt-llm", "FP8", "does not make FP8"),
        (PLAIN, "tensorrt-llm", "W4A16_AWQ", "does not make W4A16_AWQ"),
        (PLAIN, "transformers", "bitsandbytes", None),
        (PLAIN, "llama.cpp", "Q4_K_M", None),
    ],
)
def test_what_a_word_asks_of_a_checkpoint(
    model: str, engine: str, word: str, said: str | None
) -> None:
    found = said_of_word(open_model(model, offline=True), engine, word)

    assert (said is None) == (found is None)
    assert (said or "") in (found or "")


@pytest.mark.parametrize(
    ("engine", "flags", "part"),
    [
        ("sglang", {"quantization": "fp8"}, "--quantization fp8"),
        ("sglang", {"draft_head_dim": 64, "draft_kv_heads": 8}, "launch_server"),
        ("tensorrt-llm", {"dtype": "bfloat16"}, "--dtype bfloat16"),
        ("vllm", {"quantization": "fp8"}, "--quantization fp8"),
    ],
)
def test_a_command_has_what_was_given(engine: str, flags: dict[str, object], part: str) -> None:
    """But for words of ours that no engine knows."""
    found = kvplan.fit(PLAIN, gpu="h200", engine=engine, context="8k", **flags).to_dict()["command"]

    assert part in found
    assert "draft-head-dim" not in found


def test_a_pool_that_no_card_holds_is_told() -> None:
    found = kvplan.fit(PLAIN, gpu="h100-sxm-80gb", kv_pool="500GiB", context="8k")

    assert any("no such card holds it" in said for said in found.warnings)
