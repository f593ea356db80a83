"""Configs that are hostile or wrong: each ends in one clear sentence, quickly and within bounds."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.cli import run
from kvplan.core.errors import KvplanError
from kvplan.core.formats import FORMATS
from kvplan.readers.hf_config import read_config
from kvplan.readers.json_text import MAX_BYTES, parse_object
from kvplan.readers.open_model import open_model

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
}  # fmt: skip


def nested(depth: int, value: str) -> str:
    return '{"a":' * depth + value + "}" * depth


# Texts that are no config, and words of the sentence that each gets.
TEXTS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "not JSON"),
    "truncated": (json.dumps(LLAMA)[:60], "not JSON"),
    "not utf-8": (b'{"model_type": "\xff"}', "not UTF-8"),
    "binary": (bytes(range(256)) * 10, "not UTF-8"),
    "a list": ("[1, 2]", "a list where an object"),
    "a number": ("5", "a number where an object"),
    "null": ("null", "null where an object"),
    "nan": ('{"model_type": "llama", "hidden_size": NaN}', "NaN"),
    "infinity": ('{"model_type": "llama", "hidden_size": -Infinity}', "-Infinity"),
    "a key twice": ('{"model_type": "llama", "model_type": "mamba"}', "twice"),
    "nested deeply": (nested(100_000, "1"), "nested too deeply"),
    "digits": ('{"model_type": "llama", "hidden_size": ' + "9" * 100_000 + "}", "digits"),
    "huge": ('{"model_type": "llama", "x": "' + "y" * MAX_BYTES + '"}', "larger than 6 MiB"),
    "empty lists by the million": ('{"x": [' + "[]," * 1_900_000 + "[]]}", "model_type"),
}

# Changes to a good config, and words of the sentence.
VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "a text": ({"num_hidden_layers": "many"}, "num_hidden_layers is 'many'"),
    "a list": ({"hidden_size": [1]}, "hidden_size is [1]"),
    "an object": ({"num_attention_heads": {}}, "num_attention_heads is {}"),
    "true": ({"num_attention_heads": True}, "num_attention_heads is True"),
    "a fraction": ({"hidden_size": 4096.5}, "hidden_size is 4096.5"),
    "negative": ({"num_key_value_heads": -8}, "num_key_value_heads is -8"),
    "zero": ({"num_attention_heads": 0}, "num_attention_heads is 0"),
    "a billion layers": ({"num_hidden_layers": 10**9}, "up to 4,096"),
    "beyond any size": ({"hidden_size": 10**30}, "hidden_size is 1000"),
    "layer_types too short": (
        {"model_type": "gemma3_text", "layer_types": ["full_attention"]},
        "names 1 layers and num_hidden_layers is 32",
    ),
    "layer_types of nothing known": (
        {"model_type": "gemma3_text", "layer_types": ["magic"] * 32},
        "magic",
    ),
    "a window of a text": (
        {"model_type": "gemma3_text", "sliding_window": "wide"},
        "sliding_window is 'wide'",
    ),
    "no model_type": ({"model_type": None}, "names no model_type"),
    "a type of a number": ({"model_type": 5}, "names no model_type"),
    "a type of a thousand letters": ({"model_type": "x" * 1000}, "names no model_type"),
    "a section that is a list": (
        {"model_type": "gemma3", "text_config": [1]},
        "text_config is [1]",
    ),
}


def within(limit_s: float, limit_bytes: int, action: Callable[[], object]) -> None:
    tracemalloc.start()
    start = time.perf_counter()
    try:
        action()
    finally:
        took, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < limit_bytes, f"{peak:,} bytes"
    assert took < limit_s * 20, f"{took:.2f} s under tracing"


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_are_no_config(name: str, tmp_path: Path) -> None:
    """One sentence, within 200 MB."""
    text, words = TEXTS[name]
    path = tmp_path / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def ask() -> None:
        with pytest.raises(KvplanError) as caught:
            open_model(str(path))
        assert words in str(caught.value)
        assert len(str(caught.value)) < 400

    within(1.0, 200_000_000, ask)


@pytest.mark.parametrize("name", VALUES)
def test_values_that_no_model_has(name: str) -> None:
    """The sentence names the key and what it holds."""
    changed, words = VALUES[name]
    with pytest.raises(KvplanError) as caught:
        read_config({**LLAMA, **changed})

    assert words in str(caught.value)


@pytest.mark.parametrize("name", TEXTS)
def test_the_command_exits_two(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hostile file is a wrong question, never a traceback."""
    text, _ = TEXTS[name]
    path = tmp_path / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    assert 2 == run(["size", str(path)])
    assert "Traceback" not in capsys.readouterr().err


def test_a_pipe_is_no_config(tmp_path: Path) -> None:
    """What is no regular file is not read: it might never end."""
    import os

    path = tmp_path / "config.json"
    os.mkfifo(path)

    with pytest.raises(KvplanError):
        open_model(str(path))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=8)
)
VALUES_OF_ANY_KIND = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)
TYPES = [
    "llama", "gemma3_text", "gemma3", "deepseek_v3", "deepseek_v4", "qwen3_next", "jamba", "mamba2",
    "nemotron_h", "whisper", "llama4", "qwen2_vl", "gpt_oss", "falcon", "t5", "unheard_of",
]  # fmt: skip
KEYS = [
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "layer_types", "sliding_window", "intermediate_size", "vocab_size", "text_config",
    "vision_config", "kv_lora_rank", "compress_ratios", "hybrid_override_pattern",
    "quantization_config", "architectures", "rope_scaling", "num_experts", "tie_word_embeddings",
    "max_position_embeddings", "full_attention_interval", "dtype",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    model_type=st.sampled_from(TYPES),
    changed=st.dictionaries(st.sampled_from(KEYS), VALUES_OF_ANY_KIND, max_size=4),
)
def test_any_config_is_answered_or_refused(model_type: str, changed: dict[str, Any]) -> None:
    """Whatever stands in a config, the end is a model or a sentence."""
    try:
        model = read_config({"model_type": model_type, **changed})
    except KvplanError:
        return
    assert model.weights is None or model.weights.num_bytes >= 0


@settings(max_examples=200, deadline=None)
@given(text=st.binary(max_size=200))
def test_any_bytes_are_an_object_or_refused(text: bytes) -> None:
    """The bounded parser raises its own error alone."""
    try:
        assert isinstance(parse_object(text, "It"), dict)
    except KvplanError:
        return


UNKNOWN = {**LLAMA, "model_type": "unheard_of"}


def test_an_unknown_type_of_usual_keys_is_assumed() -> None:
    """Answered, marked, and what was assumed is said."""
    model = read_config(UNKNOWN)

    assert "assumed" == model.confidence
    assert "Assumed: full attention in every layer" in model.warnings[0]
    assert model.weights is None


@pytest.mark.parametrize(
    "key",
    ["sliding_window", "kv_lora_rank", "ssm_state_size", "layer_types", "compress_ratio",
     "index_topk", "attention_chunk_size", "num_kv_shared_layers", "conv_kernel",
     "linear_attn_config", "layer_group_size", "use_cla", "num_kv_reuse_layers", "n_shared_head",
     "total_ut_steps", "use_lower_bound", "num_key_value_heads_per_layer"],
)  # fmt: skip
def test_an_unknown_type_with_another_kind_of_cache_is_refused(key: str) -> None:
    """The key that says so is named, and ``--assume full`` is offered."""
    with pytest.raises(KvplanError) as caught:
        read_config({**UNKNOWN, key: 7})

    assert key in str(caught.value)
    assert "--assume full" in str(caught.value)


# Shapes under the keys of types that are not known (step1, codeshell, lille) and of none: invented
# files, whose sizes follow by arithmetic.
KV_HEADS: dict[str, tuple[dict[str, Any], int]] = {
    "num_attention_groups": (
        {"num_attention_heads": 96, "hidden_size": 12288, "num_hidden_layers": 88,
         "num_attention_groups": 8},
        360_448,
    ),
    "num_query_groups": (
        {"n_head": 32, "n_embd": 4096, "n_layer": 42, "num_query_groups": 8},
        172_032,
    ),
    "n_kv_heads": ({"n_head": 10, "n_embd": 640, "n_layer": 24, "n_kv_heads": 2}, 12_288),
    "num_kv_heads": ({"n_heads": 32, "dim": 4096, "n_layers": 32, "num_kv_heads": 8}, 131_072),
    "n_head_kv": ({"n_head": 32, "n_embd": 4096, "n_layer": 32, "n_head_kv": 8}, 131_072),
    "n_query_groups": ({"n_head": 32, "n_embd": 4096, "n_layer": 32, "n_query_groups": 8}, 131_072),
}  # fmt: skip


@pytest.mark.parametrize("key", KV_HEADS)
def test_kv_heads_of_an_unknown_type_by_any_usual_name(key: str) -> None:
    """The number is read, and which key it was taken from is said."""
    keys, per_token = KV_HEADS[key]
    model = read_config({"model_type": "unheard_of", **keys})

    assert per_token == model.curve(FORMATS["bf16"]).per_token
    assert f"{key} as the number of KV heads" in model.warnings[0]


# Files without a model_type, of layouts whose keys tell them: Mistral 7B v0.3's params.json (its
# vocabulary of 32,768), and LitGPT's keys with the shape of Gemma 7B.
UNTOLD: dict[str, tuple[dict[str, Any], int]] = {
    "params.json": (
        {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128,
         "hidden_dim": 14336, "vocab_size": 32768},
        131_072,
    ),
    "litgpt": (
        {"n_embd": 3072, "n_layer": 28, "n_head": 16, "n_query_groups": 16, "head_size": 256},
        28 * 2 * 16 * 256 * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNTOLD)
def test_layouts_that_name_no_type(name: str) -> None:
    """Answered by their keys, and marked."""
    keys, per_token = UNTOLD[name]
    model = read_config(keys)

    assert ("assumed", per_token) == (model.confidence, model.curve(FORMATS["bf16"]).per_token)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"peft_type": "LORA", "base_model_name_or_path": "a/b"}, "an adapter (LORA) of a/b"),
        ({"peft_type": "LORA"}, "a model it does not name"),
        ({"_class_name": "UNet2DConditionModel"}, "of diffusers (UNet2DConditionModel)"),
    ],
)
def test_files_that_are_no_config_of_a_model(keys: dict[str, Any], words: str) -> None:
    """The sentence says what the file is."""
    with pytest.raises(KvplanError) as caught:
        read_config(keys)

    assert words in str(caught.value)


def test_a_shape_of_class_defaults_alone_is_said() -> None:
    """A foreign file under a known type would be answered with that type's usual model."""
    model = read_config({"model_type": "llama", "n_layer": 16, "n_embd": 2048})

    assert "all are the class defaults of llama" in model.warnings[0]
    assert () == read_config(LLAMA).warnings


def test_a_folder_of_another_layout(tmp_path: Path) -> None:
    """A params.json is read, and an adapter's folder names its model."""
    path = tmp_path / "params.json"
    path.write_text(json.dumps(UNTOLD["params.json"][0]))
    assert "params_json" == open_model(str(tmp_path)).model_type

    path.unlink()
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": "a/b"})
    )
    with pytest.raises(KvplanError, match="Ask for a/b"):
        open_model(str(tmp_path))


def test_two_numbers_of_kv_heads_are_refused() -> None:
    """Neither is taken in silence."""
    with pytest.raises(KvplanError, match="num_key_value_heads 8 and num_kv_heads 4"):
        read_config({**UNKNOWN, "num_kv_heads": 4})


# Sections of a wrapper that is not known, each sparse as transformers writes it.
WRAPPED: dict[str, tuple[str, dict[str, Any]]] = {
    "latent": (
        "text_config",
        {"model_type": "deepseek_v3", "num_hidden_layers": 27, "hidden_size": 2048,
         "num_attention_heads": 16},
    ),
    "states": ("llm_config", {"model_type": "mamba2", "num_hidden_layers": 24, "hidden_size": 768,
                              "num_heads": 24, "head_dim": 64}),
    "windows": ("language_config", {"model_type": "gemma3_text", "num_hidden_layers": 34}),
    "one head": ("llm_cfg", {"model_type": "falcon", "num_hidden_layers": 32}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_an_unknown_wrapper_keeps_what_its_section_keeps(name: str) -> None:
    """The section's type decides; the answer is marked as assumed."""
    key, inner = WRAPPED[name]
    model = read_config({"model_type": "unheard_of", key: inner})

    alone = read_config(inner).curve(FORMATS["bf16"]).bytes(2048)
    assert ("assumed", alone) == (model.confidence, model.curve(FORMATS["bf16"]).bytes(2048))
    assert f"what its {key} names, {inner['model_type']!r}" in model.warnings[0]


@pytest.mark.parametrize("model_type", ["distilbert", "modernbert", "clip_text_model", "vit"])
def test_nothing_is_kept_of_an_encoder(model_type: str) -> None:
    """Types without a family whose classes return no cache (transformers 5.24.0)."""
    model = read_config({"model_type": model_type})

    assert 0 == model.curve(FORMATS["bf16"]).bytes(512)
    assert f"{model_type!r} is an encoder" in model.warnings[0]


def test_assume_full_answers_all_the_same() -> None:
    """The asker takes the responsibility."""
    model = read_config({**UNKNOWN, "sliding_window": 7}, assume="full")

    assert "assumed" == model.confidence


@pytest.mark.parametrize(
    "keys",
    [
        {"sliding_window": 262144, "max_position_embeddings": 131072},
        {"speech_lora": {"r": 320}, "vision_lora": {"r": 256}},
        {"spatial_conv_size": 2, "temporal_conv_size": 2},
        {"audio_chunk_length": 1.0, "chunk_input": True},
    ],
    ids=["a window as long as the context", "adapters", "patches", "sound"],
)
def test_keys_that_leave_the_cache_alone(keys: dict[str, Any]) -> None:
    """Sized as without them, as vLLM 0.32.0 keeps Phi 4 multimodal, ERNIE 4.5 VL and MiniCPM-o."""
    with_them, without = read_config(UNKNOWN | keys), read_config(UNKNOWN)

    assert without.curve(FORMATS["bf16"]).bytes(4096) == with_them.curve(FORMATS["bf16"]).bytes(
        4096
    )


def test_a_shorter_window_is_suspect_all_the_same() -> None:
    """It drops tokens within the context."""
    with pytest.raises(KvplanError, match="sliding_window"):
        read_config(UNKNOWN | {"sliding_window": 4096, "max_position_embeddings": 131072})


def test_multi_query_is_one_kv_head() -> None:
    """A flag of GPT's kin; with a number beside it neither is taken."""
    keys = {"n_embd": 2048, "n_head": 32, "n_layer": 32, "multi_query": True}
    model = read_config({"model_type": "unheard_of", **keys})

    assert 32 * 2 * 64 * 2 == model.curve(FORMATS["bf16"]).per_token
    assert "one KV head, by multi_query" in model.warnings[0]
    with pytest.raises(KvplanError, match="num_key_value_heads 8 and multi_query 1"):
        read_config(UNKNOWN | {"multi_query": True})


def test_a_window_that_is_switched_off_is_no_window() -> None:
    """``use_sliding_window: false`` makes the window's keys mean nothing."""
    model = read_config({**UNKNOWN, "sliding_window": 7, "use_sliding_window": False})

    assert "assumed" == model.confidence
