"""GGUF metadata of published models: the same caches as their configs describe, and the figures
that llama.cpp itself printed for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.errors import BadFile, UnknownModelType
from kvplan.core.formats import FORMATS
from kvplan.core.latent import LatentAttention
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.core.states import RecurrentState
from kvplan.readers.families.base import Options
from kvplan.readers.hf_config import read_config
from tests.readers.gguf_bytes import model

CONFIGS = Path(__file__).parent.parent / "reference" / "configs"
MIB = 1 << 20


def heads(query: int, kv: Any, key: int = 0, value: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {"attention.head_count": query, "attention.head_count_kv": kv}
    if key:
        found |= {"attention.key_length": key, "attention.value_length": value or key}
    return found


def latent(query: int, rank: int, rope: int, key: int, value: int, kv: Any = 1) -> dict[str, Any]:
    return heads(query, kv, rank + rope, rank) | {
        "attention.kv_lora_rank": rank,
        "rope.dimension_count": rope,
        "attention.key_length_mla": key,
        "attention.value_length_mla": value,
    }


def states(kernel: int, inner: int, state: int, rank: int, groups: int = 0) -> dict[str, Any]:
    return {
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": rank,
        "ssm.group_count": groups,
    }


def blocks(count: int, width: int, **others: Any) -> dict[str, Any]:
    return {"block_count": count, "embedding_length": width, **others}


def at(places: set[int], count: int, there: int, elsewhere: int = 0) -> list[int]:
    return [there if place in places else elsewhere for place in range(count)]


def window(size: int, pattern: Any = None) -> dict[str, Any]:
    found: dict[str, Any] = {"attention.sliding_window": size}
    return found if pattern is None else found | {"attention.sliding_window_pattern": pattern}


def every(period: int, count: int) -> list[bool]:
    return [bool((place + 1) % period) for place in range(count)]


NEMOTRON = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"
KIMI_FULL = {3, 7, 11, 15, 19, 23, 26}
MIMO_FULL = {0, 5, 11, 17, 23, 29, 35, 41, 47}

# Published configs and the metadata of their GGUF files, as llama.cpp's converter writes it.
SAME: list[tuple[str, str, dict[str, Any]]] = [
    ("HuggingFaceTB--SmolLM2-1.7B", "llama", blocks(24, 2048) | heads(32, 32)),
    ("meta-llama--Llama-3.1-8B-Instruct", "llama", blocks(32, 4096) | heads(32, 8)),
    ("google--gemma-2-9b", "gemma2", blocks(42, 3584) | heads(16, 8, 256) | window(4096)),
    ("maxtext--gemma-3-27b-it", "gemma3", blocks(62, 5376) | heads(32, 16, 128) | window(1024)),
    (
        "google--gemma-3n-E4B-it",
        "gemma3n",
        blocks(35, 2048) | heads(8, 2, 256) | window(512, every(5, 35)),
    ),
    (
        "maxtext--gemma-4-E4B",
        "gemma4",
        blocks(42, 2560, **{"attention.shared_kv_layers": 18})
        | heads(8, 2, 512)
        | {"attention.key_length_swa": 256, "attention.value_length_swa": 256}
        | window(512, every(6, 42)),
    ),
    (
        "google--gemma-4-12B-it",
        "gemma4",
        blocks(48, 3840)
        | heads(16, [8 if sliding else 1 for sliding in every(6, 48)], 512)
        | {"attention.key_length_swa": 256, "attention.value_length_swa": 256}
        | window(1024, every(6, 48)),
    ),
    ("openai--gpt-oss-20b", "gpt-oss", blocks(24, 2880) | heads(64, 8, 64) | window(128)),
    (
        "LGAI-EXAONE--EXAONE-4.0-32B",
        "exaone4",
        blocks(64, 5120) | heads(40, 8) | window(4096, every(4, 64)),
    ),
    ("allenai--Olmo-3-32B-Think", "olmo2", blocks(64, 5120) | heads(40, 8) | window(4096)),
    (
        "XiaomiMiMo--MiMo-V2-Flash",
        "mimo2",
        blocks(48, 4096)
        | heads(64, at(MIMO_FULL, 48, 4, 8), 192, 128)
        | window(128, at(MIMO_FULL, 48, 0, 1)),
    ),
    (
        "meta-llama--Llama-4-Scout-17B-16E-Instruct",
        "llama4",
        blocks(48, 5120) | heads(40, 8, 128),
    ),
    ("deepseek-ai--DeepSeek-V3", "deepseek2", blocks(61, 7168) | latent(128, 512, 64, 192, 128)),
    (
        "openbmb--MiniCPM3-4B",
        "minicpm3",
        blocks(62, 2560, **{"rope.dimension_count": 32})
        | heads(40, 40, 96, 64)
        | {"attention.kv_lora_rank": 256},
    ),
    (
        "deepseek-ai--DeepSeek-V3.2",
        "deepseek32",
        blocks(62, 7168, nextn_predict_layers=1, **{"attention.indexer.key_length": 128})
        | latent(128, 512, 64, 192, 128),
    ),
    (
        "zai-org--GLM-5",
        "glm-dsa",
        blocks(79, 6144, nextn_predict_layers=1, **{"attention.indexer.key_length": 128})
        | latent(64, 512, 64, 256, 256),
    ),
    (
        "zai-org--GLM-5.2",
        "glm-dsa",
        blocks(79, 6144, nextn_predict_layers=1, context_length=1 << 20)
        | {"attention.indexer.key_length": 128}
        | latent(64, 512, 64, 256, 256),
    ),
    (
        "zai-org--GLM-5.2",
        "glm-dsa",
        blocks(79, 6144, nextn_predict_layers=1)
        | {"attention.indexer.key_length": 128}
        | {"attention.indexer.types": [n < 2 or n % 4 == 2 for n in range(78)]}
        | latent(64, 512, 64, 256, 256),
    ),
    (
        "deepseek-ai--DeepSeek-V4-Flash",
        "deepseek4",
        blocks(44, 4096, nextn_predict_layers=1)
        | heads(64, 1, 512)
        | window(128)
        | {"attention.indexer.key_length": 128}
        | {"attention.compress_ratios": [0, 0] + [4, 128] * 20 + [4, 0]},
    ),
    (
        "inclusionAI--Ling-3.0-tiny",
        "bailingmoe3",
        blocks(24, 1536, **{"kda.head_dim": 128, "ssm.conv_kernel": 4})
        | latent(16, 512, 64, 192, 128, [0, 0, 0, 16] * 6),
    ),
    (
        "poolside--Laguna-S-2.1",
        "laguna",
        blocks(48, 3072) | heads([48, 72, 72, 72] * 12, 8, 128) | window(512),
    ),
    (
        "zai-org--GLM-4.5-Air",
        "glm4moe",
        blocks(47, 4096, nextn_predict_layers=1) | heads(96, 8, 128),
    ),
    (
        "moonshotai--Kimi-Linear-48B-A3B-Instruct",
        "kimi-linear",
        blocks(27, 2304, **{"kda.head_dim": 128, "ssm.conv_kernel": 4})
        | latent(32, 512, 64, 192, 128, at(KIMI_FULL, 27, 32)),
    ),
    (
        "Qwen--Qwen3-Next-80B-A3B-Instruct",
        "qwen3next",
        blocks(48, 2048, full_attention_interval=4)
        | heads(16, 2, 256)
        | states(4, 4096, 128, 32, 16),
    ),
    (
        "Qwen--Qwen3.5-9B",
        "qwen35",
        blocks(33, 4096, full_attention_interval=4, nextn_predict_layers=1)
        | heads(16, 4, 256)
        | states(4, 4096, 128, 32, 16),
    ),
    ("state-spaces--mamba-1.4b-hf", "mamba", blocks(48, 2048) | states(4, 4096, 16, 128)),
    ("state-spaces--mamba2-2.7b", "mamba2", blocks(64, 2560) | states(4, 5120, 128, 80, 1)),
    (
        "ai21labs--AI21-Jamba-1.5-Mini",
        "jamba",
        blocks(32, 4096) | heads(32, at({4, 12, 20, 28}, 32, 8)) | states(4, 8192, 16, 256),
    ),
    (
        "tiiuae--Falcon-H1-1.5B-Instruct",
        "falcon-h1",
        blocks(24, 2048) | heads(8, 2, 128) | states(4, 3072, 256, 48, 1),
    ),
    (
        "ibm-granite--granite-4.0-h-small",
        "granitehybrid",
        blocks(40, 4096) | heads(32, at({5, 15, 25, 35}, 40, 8)) | states(4, 8192, 128, 128, 1),
    ),
    (
        "nvidia--Nemotron-H-8B-Base-8K",
        "nemotron_h",
        blocks(52, 4096)
        | heads(32, [8 if letter == "*" else 0 for letter in NEMOTRON], 128)
        | {"feed_forward_length": [21504 if letter == "-" else 0 for letter in NEMOTRON]}
        | states(4, 8192, 128, 128, 8),
    ),
    (
        "LiquidAI--LFM2-1.2B",
        "lfm2",
        blocks(16, 2048, **{"shortconv.l_cache": 3}) | heads(32, at({2, 5, 8, 10, 12, 14}, 16, 8)),
    ),
    ("google-t5--t5-base", "t5", blocks(12, 768, context_length=512) | heads(12, 12, 64)),
]


@pytest.mark.parametrize(("file", "architecture", "keys"), SAME, ids=[row[0] for row in SAME])
def test_same_cache_as_the_config(file: str, architecture: str, keys: Mapping[str, Any]) -> None:
    """A GGUF file and the config that it was converted from describe one cache."""
    config = json.loads((CONFIGS / f"{file}.json").read_text(encoding="utf-8"))
    expected, actual = read_config(config), model(architecture, keys)
    fmt = FORMATS["bf16"]

    for tokens in (0, 1, 100, 3000, 20_000):
        assert expected.curve(fmt).bytes(tokens) == actual.curve(fmt).bytes(tokens)
    assert "verified" == actual.confidence


def kinds(found: Model) -> dict[str, int]:
    counts: dict[str, int] = {}
    for layer, count in found.layers():
        counts[layer.kind] = counts.get(layer.kind, 0) + count
    return counts


def whole(layer: Layer) -> Layer:
    """A window as wide as the cache: what llama.cpp prints with --swa-full and older builds."""
    if not isinstance(layer, FullAttention):
        return layer
    return FullAttention(
        kv_heads=layer.kv_heads,
        key_dim=layer.key_dim,
        value_dim=layer.value_dim,
        query_heads=layer.query_heads,
    )


def printed(found: Model, kind: str, cells: int, fmt: str = "f16") -> float:
    """MiB of all layers of a kind in so many cells, as llama.cpp's start-up lines have them."""
    layers = [(whole(layer), count) for layer, count in found.layers() if layer.kind == kind]
    return sum(layer.stored(cells, FORMATS[fmt]).total * n for layer, n in layers) / MIB


# MiB that llama.cpp printed when it loaded these models (reports of 2025 and 2026).
PRINTED: list[tuple[str, dict[str, Any], str, int, str, float]] = [
    ("llama", blocks(32, 4096) | heads(32, 8, 128), "full_attention", 8192, "f16", 1024.0),
    ("qwen2", blocks(28, 3584) | heads(28, 4), "full_attention", 4096, "f16", 224.0),
    ("qwen3moe", blocks(94, 4096) | heads(64, 4, 128), "full_attention", 40960, "q8_0", 3995.0),
    ("glm4", blocks(61, 6144) | heads(48, 2, 128), "full_attention", 5120, "q8_0", 162.03),
    ("phi3", blocks(32, 3072) | heads(32, 32) | window(2047), "full_attention", 2048, "f16", 768.0),
    (
        "deepseek2",
        blocks(61, 7168) | latent(128, 512, 64, 192, 128),
        "latent_attention",
        32768,
        "q8_0",
        1166.62,
    ),
    (
        "gemma4",
        SAME[5][2],
        "sliding_window",
        32768,
        "f16",
        1280.0,
    ),
    ("gemma4", SAME[5][2], "full_attention", 32768, "f16", 512.0),
    ("gemma4", SAME[6][2], "sliding_window", 4608, "q8_0", 765.0),
    ("gemma4", SAME[6][2], "full_attention", 8192, "q8_0", 68.0),
    (
        "qwen3next",
        blocks(48, 2048) | heads(16, 2, 256) | states(4, 4096, 128, 32, 16),
        "full_attention",
        132_352,
        "f16",
        3102.0,
    ),
    (
        "falcon-h1",
        blocks(24, 2048) | heads(8, 2, 128) | states(4, 3072, 256, 48, 1),
        "full_attention",
        32768,
        "f16",
        768.0,
    ),
]


@pytest.mark.parametrize(("architecture", "keys", "kind", "cells", "fmt", "mib"), PRINTED)
def test_llama_cpp_printed(
    architecture: str, keys: Mapping[str, Any], kind: str, cells: int, fmt: str, mib: float
) -> None:
    """The geometry gives the figures of llama.cpp's start-up lines, to the digits printed."""
    assert mib == round(printed(model(architecture, keys), kind, cells, fmt) - 1e-9, 2)


@pytest.mark.parametrize(
    ("architecture", "keys", "mib"),
    [
        ("qwen3next", blocks(48, 2048) | heads(16, 2, 256) | states(4, 4096, 128, 32, 16), 75.375),
        ("qwen35moe", blocks(40, 2048) | heads(16, 2, 256) | states(4, 4096, 128, 32, 16), 62.8125),
        ("qwen35", blocks(64, 5120) | heads(24, 4, 256) | states(4, 6144, 128, 48, 16), 149.625),
        ("mamba", blocks(48, 2048) | states(4, 4096, 16, 128), 14.25),
        ("mamba", blocks(64, 2560) | states(4, 5120, 16, 160), 23.75),
    ],
)
def test_llama_cpp_printed_states(architecture: str, keys: Mapping[str, Any], mib: float) -> None:
    """One column less of the convolution, all in float32: the printed size of a sequence."""
    total = 0
    for layer, count in model(architecture, keys).layers():
        if isinstance(layer, RecurrentState):
            conv, state = layer.tensors
            total += 4 * conv.shape[0] * (conv.shape[1] - 1) * count + state.num_bytes * count

    assert mib == total / MIB


def test_older_latent_files_are_decompressed_by_llama_cpp() -> None:
    """Without key_length_mla the row is still latent, and a warning says what llama.cpp does."""
    old = blocks(61, 7168, **{"rope.dimension_count": 64, "attention.kv_lora_rank": 512})
    found = model("deepseek2", old | heads(128, 128, 192, 128))
    (layer, count), *_ = found.layers()

    assert isinstance(layer, LatentAttention)
    assert 61 * 576 * 2 == layer.per_token(FORMATS["f16"]) * count  # type: ignore[operator]
    assert (
        9760.0
        == sum(one.multi_head().stored(2048, FORMATS["f16"]).total * n for one, n in found.layers())
        / MIB
    )  # what llama.cpp printed for such a file
    assert "128 × (192 + 128)" in found.warnings[0]


@pytest.mark.parametrize(
    ("architecture", "keys", "expected"),
    [
        ("gemma2", window(4096), {"sliding_window": 3, "full_attention": 3}),
        ("gemma2", window(0), {"full_attention": 6}),
        ("gemma2", {}, {"sliding_window": 3, "full_attention": 3}),
        ("gemma3", window(512), {"sliding_window": 5, "full_attention": 1}),
        ("gemma3", window(512, 3), {"sliding_window": 4, "full_attention": 2}),
        ("gemma3", window(512, 0), {"sliding_window": 6}),
        ("gemma3", window(512, 1), {"full_attention": 6}),
        ("gemma3", {}, {"full_attention": 6}),
        ("cohere2", window(4096), {"sliding_window": 5, "full_attention": 1}),
        ("cohere2moe", window(4096, 3), {"full_attention": 2, "sliding_window": 4}),
        ("smallthinker", window(4096), {"full_attention": 2, "sliding_window": 4}),
        ("llama4", {}, {"chunked_attention": 5, "full_attention": 1}),
        ("llama4", window(0), {"full_attention": 6}),
        ("gemma3n", window(512, [True] * 6), {"sliding_window": 6}),
        ("lfm2", window(64) | {"shortconv.l_cache": 3}, {"sliding_window": 6}),
        ("bert", {}, {"none": 6}),
        ("dream", {}, {"none": 6}),
        ("deci", {"attention.head_count_kv": [0, 8, 8, 0, 4, 8]}, {"none": 2, "full_attention": 4}),
    ],
)
def test_kinds_of_layers(
    architecture: str, keys: Mapping[str, Any], expected: dict[str, int]
) -> None:
    """Which of six layers have what, by what the file says and what llama.cpp takes otherwise."""
    found = model(architecture, blocks(6, 2048) | heads(16, 8, 128) | keys)

    assert expected == kinds(found)


def test_rwkv_state() -> None:
    """Two shifts as wide as the model and a square state a head, in float32."""
    found = model("rwkv7", blocks(12, 768, **{"wkv.head_size": 64}))

    assert 12 * 4 * (2 * 768 + 768 * 64) == found.curve(FORMATS["bf16"]).bytes(1000)


def test_encoder_tokens_of_t5() -> None:
    """The asker's length of the encoder stands before the file's context."""
    keys = blocks(2, 64, context_length=512, decoder_block_count=3) | heads(4, 4, 16)
    found = model("t5", keys, Options(encoder_tokens=10))

    assert 10 == found.encoder_tokens
    assert 3 * 2 * 4 * 16 * 2 * (10 + 7) == found.curve(FORMATS["bf16"]).bytes(7)


def test_an_unknown_architecture_with_conventional_keys_is_assumed() -> None:
    """Full attention, marked as assumed, with a warning that names what was assumed."""
    found = model("talkie", blocks(2, 64) | heads(4, 2, 16) | window(128))

    assert "assumed" == found.confidence
    assert {"full_attention": 2} == kinds(found)
    assert "'talkie' is not known. Assumed: full attention" in found.warnings[-1]
    assert "128 tokens" in found.warnings[0]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (blocks(2, 64) | heads(4, 2) | {"ssm.state_size": 16}, "ssm.state_size"),
        (blocks(2, 64) | heads(4, 2) | {"attention.kv_lora_rank": 16}, "attention.kv_lora_rank"),
        ({"block_count": 2, "embedding_length": 64}, "attention.head_count"),
    ],
)
def test_an_unknown_architecture_with_other_keys_is_refused(
    keys: Mapping[str, Any], named: str
) -> None:
    """The keys that speak of another cache, or that are absent, are named."""
    with pytest.raises(UnknownModelType, match=named):
        model("talkie", keys)


@pytest.mark.parametrize(
    ("architecture", "keys", "said"),
    [
        ("llama", {"embedding_length": 8}, "has no llama.block_count"),
        ("llama", blocks(5000, 8), "llama.block_count of test.gguf is 5000"),
        ("llama", blocks(2, 8) | heads(-1, 1), "is -1, which is not a whole number"),
        ("llama", blocks(2, 8) | heads(1, [1, 1, 1]), "has 3 numbers for 2 layers"),
        ("llama", blocks(2, 8) | heads(1, 1.5), "is 1.5, which is not a whole number"),
        ("llama", blocks(2, 8) | heads(1, float("nan")), "is nan, which is not a whole number"),
        ("llama", blocks(2, 8) | heads(1, "two"), "is 'two', which is not a whole number"),
        ("llama", blocks(2, 8, nextn_predict_layers=3), "2 blocks, 3 of them for drafting"),
        ("llama", blocks(2, 1 << 41), "is 2199023255552, which is not a whole number"),
        ("gemma4", blocks(2, 8) | window(4), "has windows and no gemma4.attention.sliding_window"),
        ("gemma4", blocks(2, 8, **{"attention.shared_kv_layers": 2}), "2 of them share a cache"),
        ("cohere2moe", blocks(2, 8) | window(4), "has windows and no cohere2moe"),
        ("deepseek4", blocks(2, 8) | window(4), "has no deepseek4.attention.compress_ratios"),
        ("mamba2", blocks(2, 8) | states(4, 10, 4, 3), "is 10, which is no multiple of"),
        ("rwkv6", blocks(2, 10, **{"wkv.head_size": 4}), "is 10, which is no multiple of"),
        ("clip", blocks(2, 8), "holds a vision or audio projector, no language model"),
    ],
)
def test_bad_metadata_is_a_sentence(architecture: str, keys: Mapping[str, Any], said: str) -> None:
    """A key that is absent, wrongly typed or out of range is named with its value."""
    with pytest.raises(BadFile, match=said):
        model(architecture, keys)
