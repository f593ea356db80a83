"""Decoders whose code is published beside their weights, against their published sizes.

Counts are those that headers of the weights or fine-tuning tools print; Orion's is published
rounded, as 14.5 billion.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvplan.core.errors import BadFile
from kvplan.core.formats import FORMATS
from kvplan.readers.hf_config import read_config
from tests.oracle_cases import CONFIGS

# Published config, parameters, bytes of a token's keys and values in 16 bits (None: windows).
PUBLISHED: dict[str, tuple[int, int | None]] = {
    "THUDM--chatglm3-6b.json": (6_243_584_000, 28_672),
    "THUDM--glm-4-9b.json": (9_399_951_360, 40_960),
    "Qwen--Qwen-72B.json": (72_287_920_128, 2_621_440),
    "baichuan-inc--Baichuan2-7B-Chat.json": (7_505_973_248, 524_288),
    "internlm--internlm2-7b.json": (7_737_708_544, 131_072),
    "mlc-preset--minicpm_2b_sft_bf16.json": (2_724_880_896, 368_640),
    "mlc-preset--orion.json": (14_498_703_360, 819_200),
    "mlc-preset--phi-2.json": (2_779_683_840, 327_680),
    "mlc-preset--phi-3_5-vision.json": (4_146_621_440, None),
    "mlc-preset--qwen.json": (1_836_828_672, 196_608),
    "nvidia--Llama-3_3-Nemotron-Super-49B-v1.json": (49_867_145_216, 200_704),
}
PHI_3_SMALL = {
    "model_type": "phi3small",
    "hidden_size": 4096,
    "ff_intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 100352,
}
CHATGLM_1 = {
    "model_type": "chatglm",
    "hidden_size": 4096,
    "inner_hidden_size": 16384,
    "num_layers": 28,
    "num_attention_heads": 32,
    "vocab_size": 130528,
}
DECILM = {
    "model_type": "deci",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads_per_layer": [4] * 8 + [2] * 11 + [1] * 13,
    "vocab_size": 32000,
}
FALCON_40B = {
    "model_type": "RefinedWeb",
    "hidden_size": 8192,
    "n_layer": 60,
    "n_head": 128,
    "n_head_kv": 8,
    "vocab_size": 65024,
}
# bigcode/santacoder: the type of GPT-2, and a class of its own with one KV head.
SANTACODER = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadCustomModel"],
    "attention_head_type": "multiquery",
    "n_embd": 2048,
    "n_head": 16,
    "n_inner": 8192,
    "n_layer": 24,
    "n_positions": 2048,
    "vocab_size": 49280,
}
MPT_GROUPED = {
    "model_type": "mpt",
    "attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 8},
    "d_model": 3072,
    "n_heads": 24,
    "n_layers": 32,
    "vocab_size": 32768,
}


@pytest.mark.parametrize(("name", "expected"), PUBLISHED.items(), ids=PUBLISHED)
def test_published_models(name: str, expected: tuple[int, int | None]) -> None:
    """Parameters and the cost of a token."""
    model = read_config(json.loads((CONFIGS / name).read_text(encoding="utf-8")))

    assert model.weights is not None
    assert expected == (model.weights.parameters, model.curve(FORMATS["bf16"]).per_token)


@pytest.mark.parametrize(
    ("keys", "parameters", "per_token"),
    [
        (PHI_3_SMALL, 7_392_272_384, 131_072),
        (CHATGLM_1, 6_173_286_400, 458_752),
        (DECILM, 7_043_551_232, 67 * 2 * 128 * 2),
        (DECILM | {"model_type": "llama"}, 7_043_551_232, 67 * 2 * 128 * 2),
        (FALCON_40B, 41_303_293_952, 1_966_080),
        (SANTACODER, 1_124_886_528, 12_288),
        (MPT_GROUPED, 3_322_088_448, 131_072),
    ],
    ids=["phi3small", "chatglm-6b", "deci", "deci as llama", "RefinedWeb", "santacoder", "mpt"],
)
def test_types_of_remote_code(keys: dict[str, Any], parameters: int, per_token: int) -> None:
    """Rules of types that no published config here uses."""
    model = read_config(keys)

    assert model.weights is not None
    assert (parameters, per_token) == (
        model.weights.parameters,
        model.curve(FORMATS["bf16"]).per_token,
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("THUDM--glm-4-9b.json", "vision_config"),
        ("mlc-preset--qwen.json", "visual"),
        ("Qwen--Qwen2-7B.json", "mm_vision_tower"),
    ],
)
def test_an_encoder_that_is_not_counted_is_said(name: str, key: str) -> None:
    """GLM-4V, Qwen-VL and LLaVA's own class keep the type of their language model."""
    config = json.loads((CONFIGS / name).read_text(encoding="utf-8"))
    alone, seeing = read_config(config), read_config(config | {key: {"hidden_size": 1792}})

    assert alone.weights is not None
    assert seeing.weights is not None
    assert alone.weights.parameters == seeing.weights.parameters
    assert f"what {key} names is not counted" in seeing.warnings[-1]


@pytest.mark.parametrize(
    "blocks",
    [None, {}, [], [1], [{"attention": {"no_op": True}}], [{"attention": [], "ffn": {}}]],
)
def test_blocks_that_are_not_blocks_are_refused(blocks: object) -> None:
    """A list of one object a block, with both parts."""
    keys = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100, "num_hidden_layers": 1}
    with pytest.raises(BadFile, match="block_configs"):
        read_config({"model_type": "nemotron-nas", "block_configs": blocks, **keys})
