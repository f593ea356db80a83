"""What a storage format costs, scales apart, for 1,000 tokens of 8 heads of 128 elements."""

from __future__ import annotations

import pytest

from kvplan.core.errors import BadValue
from kvplan.core.formats import FORMATS, Stored, parse_format

ELEMENTS = 1_000 * 8 * 128

# ggml block sizes are llama.cpp's (ggml-common.h); the rest is counted by hand.
KEYS = [
    ("f32", ELEMENTS * 4, 0),
    ("bf16", ELEMENTS * 2, 0),
    ("f16", ELEMENTS * 2, 0),
    ("fp8_e4m3", ELEMENTS, 0),  # its scale is the layer's, not a sequence's
    ("fp8_e5m2", ELEMENTS, 0),
    ("fp8_per_token_head", ELEMENTS, 1_000 * 8 * 4),
    ("int8_per_token_head", ELEMENTS, 1_000 * 8 * 4),
    ("int8", ELEMENTS, 1_000 * 8 * 2 * 4),
    ("int4", ELEMENTS // 2, 1_000 * 8 * 2 * 4),
    ("int2", ELEMENTS // 4, 1_000 * 8 * 2 * 4),
    ("int4_g32", ELEMENTS // 2, 1_000 * 8 * 4 * 4),
    ("nvfp4", ELEMENTS // 2, ELEMENTS // 16),
    ("mxfp4", ELEMENTS // 2, ELEMENTS // 32),
    ("q8_0", ELEMENTS, ELEMENTS // 32 * 2),
    ("q5_1", ELEMENTS // 32 * 20, ELEMENTS // 32 * 4),
    ("q5_0", ELEMENTS // 32 * 20, ELEMENTS // 32 * 2),
    ("q4_1", ELEMENTS // 2, ELEMENTS // 32 * 4),
    ("q4_0", ELEMENTS // 2, ELEMENTS // 32 * 2),
    ("iq4_nl", ELEMENTS // 2, ELEMENTS // 32 * 2),
    # 1,000 = 7 × 128 + 104: 896 packed in groups of 32 tokens a channel, 104 whole.
    ("kivi4", 896 * 1024 // 2 + 104 * 1024 * 2, 1024 * 28 * 4),
    ("kivi2", 896 * 1024 // 4 + 104 * 1024 * 2, 1024 * 28 * 4),
]
# The last 128 values are whole; 872 are packed a token at a time in groups of 32.
VALUES = [
    ("kivi4", 872 * 1024 // 2 + 128 * 1024 * 2, 872 * 8 * 4 * 4),
    ("kivi2", 872 * 1024 // 4 + 128 * 1024 * 2, 872 * 8 * 4 * 4),
    ("q8_0", ELEMENTS, ELEMENTS // 32 * 2),
]
SPELLINGS = [
    ("bfloat16", "bf16"), ("FP8", "fp8_e4m3"), ("fp8_e4m3fn", "fp8_e4m3"), ("auto", "bf16"),
    ("float16", "f16"), ("Q8_0", "q8_0"), ("iq4-nl", "iq4_nl"), ("kivi", "kivi2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "scales"), KEYS, ids=[row[0] for row in KEYS])
def test_keys(name: str, raw: int, scales: int) -> None:
    """Elements and scales of the keys."""
    assert Stored(raw, scales) == FORMATS[name].keys(1_000, 8, 128)


@pytest.mark.parametrize(("name", "raw", "scales"), VALUES, ids=[row[0] for row in VALUES])
def test_values(name: str, raw: int, scales: int) -> None:
    """Elements and scales of the values."""
    assert Stored(raw, scales) == FORMATS[name].values(1_000, 8, 128)


@pytest.mark.parametrize("name", FORMATS)
def test_no_tokens_cost_no_elements(name: str) -> None:
    """An empty cache holds no elements."""
    assert 0 == FORMATS[name].keys(0, 8, 128).raw


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_never_fall(name: str) -> None:
    """More tokens never cost less, but where KIVI packs a full residual."""
    fmt = FORMATS[name]
    sizes = [fmt.values(tokens, 2, 64).total for tokens in range(600)]

    assert sizes == sorted(sizes)


@pytest.mark.parametrize(("spelling", "name"), SPELLINGS)
def test_spellings(spelling: str, name: str) -> None:
    """Engines' and torch's names mean the same formats."""
    assert name == parse_format(spelling).name


def test_a_row_that_blocks_do_not_divide() -> None:
    """No engine stores 80 elements in blocks of 32."""
    with pytest.raises(BadValue, match="whole number of blocks"):
        FORMATS["q8_0"].keys(1, 1, 80)


def test_an_unknown_format_lists_those_there_are() -> None:
    """The error names what was asked and what is known."""
    with pytest.raises(BadValue, match=r"'int3'.*q8_0"):
        parse_format("int3")
