"""Any bytes and any metadata: a model or a sentence, never another exception."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvplan.core.errors import KvplanError
from kvplan.core.formats import FORMATS
from kvplan.readers.gguf import read_gguf
from kvplan.readers.gguf.registry import ARCHITECTURES
from kvplan.readers.ranges import Memory
from tests.readers.gguf_bytes import header

KEYS = (
    "block_count", "embedding_length", "context_length", "vocab_size", "attention.head_count",
    "attention.head_count_kv", "attention.key_length", "attention.value_length",
    "attention.sliding_window", "attention.sliding_window_pattern", "attention.shared_kv_layers",
    "attention.kv_lora_rank", "attention.key_length_mla", "attention.value_length_mla",
    "attention.indexer.key_length", "rope.dimension_count", "nextn_predict_layers",
    "feed_forward_length", "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size",
    "ssm.time_step_rank", "ssm.group_count", "wkv.head_size", "kda.head_dim", "shortconv.l_cache",
    "full_attention_interval", "decoder_block_count", "expert_count", "expert_used_count",
    "token_shift_count",
)  # fmt: skip
numbers = st.integers(-2, 40) | st.sampled_from([0, 1, 1 << 20, 1 << 62, -(1 << 63)])
values = numbers | st.floats() | st.booleans() | st.text(max_size=4) | st.lists(numbers, max_size=6)
names = st.sampled_from(sorted(ARCHITECTURES)) | st.text(max_size=5)
QUICK = settings(
    max_examples=120, deadline=5000, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def read(data: bytes) -> None:
    """A model that can be asked, or a sentence."""
    with suppress(KvplanError):
        found = read_gguf(Memory(data, "fuzz.gguf"))
        assert found.curve(FORMATS["bf16"]).bytes(1000) >= 0
        found.facts()


@QUICK
@given(names, st.dictionaries(st.sampled_from(KEYS), values))
def test_any_metadata(architecture: str, keys: dict[str, Any]) -> None:
    """Whatever the keys say."""
    full = {f"{architecture}.{key}": found for key, found in keys.items()}
    read(header({"general.architecture": architecture, **full}))


@QUICK
@given(
    st.sampled_from(sorted(ARCHITECTURES)),
    st.lists(st.integers(1, 6), min_size=len(KEYS), max_size=len(KEYS)),
    st.sampled_from(KEYS),
    values,
)
def test_any_metadata_that_is_nearly_right(
    architecture: str, small: list[int], odd: str, found: Any
) -> None:
    """Small positive numbers everywhere but in one key: what comes after the checks is reached."""
    keys = dict(zip(KEYS, small, strict=True)) | {odd: found}
    full = {f"{architecture}.{key}": found for key, found in keys.items()}
    read(header({"general.architecture": architecture, **full}))


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Whatever follows the magic."""
    read(b"GGUF\x03\0\0\0" + data)


WHOLE = header(
    {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.embedding_length": 64,
        "llama.attention.head_count": [2, 2],
        "tokenizer.ggml.tokens": ["a", "b"],
    },
    [("token_embd.weight", (32, 2), 8, 0), ("blk.0.ffn_up_exps.weight", (32, 2, 2), 0, 96)],
) + bytes(1024)


@QUICK
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.integers(0, len(WHOLE)))
def test_any_byte_changed(place: int, byte: int, end: int) -> None:
    """A file with one byte changed, and the same cut off anywhere."""
    changed = WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]
    read(changed)
    read(changed[:end])
