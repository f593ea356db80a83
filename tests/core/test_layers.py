"""What each kind of layer keeps of one sequence, on its own and on a rank."""

from __future__ import annotations

import pytest

from kvplan.core.compressed import CompressedAttention
from kvplan.core.cross import CrossAttention
from kvplan.core.curve import Curve
from kvplan.core.formats import FORMATS
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.layers import (
    ChunkedAttention,
    FullAttention,
    Layer,
    NoCache,
    SharedCache,
    SlidingWindow,
)
from kvplan.core.states import ConvolutionState, LinearAttention, RecurrentState, StateTensor

BF16 = FORMATS["bf16"]
GQA = {"kv_heads": 8, "key_dim": 128, "value_dim": 128, "query_heads": 32}
MLA = {
    "rank": 512, "rope_dim": 64, "query_heads": 128, "head_key_dim": 192, "head_value_dim": 128,
}  # fmt: skip
STATE = (
    StateTensor(name="conv", shape=(6144, 4), element_bytes=2),
    StateTensor(name="ssm", shape=(64, 64, 128), element_bytes=4),
)

FULL = FullAttention(**GQA)
WINDOW = SlidingWindow(**GQA, size=1024)
CHUNK = ChunkedAttention(**GQA, size=8192)
LATENT = LatentAttention(**MLA)
INDEXED = IndexedLatentAttention(**MLA, index_dim=128)
CSA = CompressedAttention(dim=512, size=128, ratio=4, index_dim=128)
HCA = CompressedAttention(dim=512, size=128, ratio=128)
MAMBA = RecurrentState(tensors=STATE)
CROSS = CrossAttention(kv_heads=20, key_dim=64, value_dim=64, encoder_tokens=1500)

# layer, tokens, bytes
KEPT = [
    (FULL, 0, 0),
    (FULL, 1, 4_096),
    (FULL, 32_768, 32_768 * 4_096),
    (WINDOW, 1_000, 1_000 * 4_096),
    (WINDOW, 1_023, 1_023 * 4_096),
    (WINDOW, 1_024, 1_023 * 4_096),
    (WINDOW, 100_000, 1_023 * 4_096),
    (CHUNK, 8_191, 8_191 * 4_096),
    (CHUNK, 9_000, 8_191 * 4_096),
    (LATENT, 1_000, 1_000 * 1_152),
    (INDEXED, 1_000, 1_000 * 1_408),
    (FullAttention(**GQA, index_dim=128), 10, 10 * (4_096 + 256)),
    (FullAttention(**GQA, index_dim=128, index_bytes=4), 10, 10 * (4_096 + 512)),
    (MAMBA, 0, 6144 * 4 * 2 + 64 * 64 * 128 * 4),
    (MAMBA, 9_999, 6144 * 4 * 2 + 64 * 64 * 128 * 4),
    (CROSS, 0, 1500 * 20 * 128 * 2),
    (CROSS, 448, 1500 * 20 * 128 * 2),
    # 7 tokens of DeepSeek V4 as transformers holds them: see tests/reference/kv_oracle.
    (CSA, 7, 7168 + (6144 + 1536) * 2 + 1024 + 256 + 4096 + 1024 + 8192 + 2048),
    (HCA, 7, 7168 * 3),
    (HCA, 5_000, 130_048 + 8_192 * 2 + 39_936),
    (NoCache(), 10, 0),
    (SharedCache(source="sliding_window"), 10, 0),
]
KINDS = [
    (FULL, "full_attention"), (WINDOW, "sliding_window"), (CHUNK, "chunked_attention"),
    (LATENT, "latent_attention"), (INDEXED, "indexed_latent_attention"),
    (CSA, "compressed_attention"), (MAMBA, "recurrent_state"), (CROSS, "cross_attention"),
    (LinearAttention(tensors=STATE), "linear_attention"),
    (ConvolutionState(tensors=STATE[:1]), "convolution_state"),
    (NoCache(), "none"), (SharedCache(), "shared"),
]  # fmt: skip
ON_RANK = [
    (FULL, 4, 1_024),
    (FULL, 8, 512),
    (FULL, 16, 512),  # fewer heads than ranks: each keeps one
    (LATENT, 8, 1_152),
    (MAMBA, 4, 0),
]


@pytest.mark.parametrize(("layer", "tokens", "expected"), KEPT)
def test_kept(layer: Layer, tokens: int, expected: int) -> None:
    """Bytes after so many tokens."""
    assert expected == layer.stored(tokens, BF16).total


@pytest.mark.parametrize(("layer", "kind"), KINDS)
def test_kinds(layer: Layer, kind: str) -> None:
    """The contract's name of each kind."""
    assert kind == layer.kind


@pytest.mark.parametrize(("layer", "tp", "per_token"), ON_RANK)
def test_on_a_rank(layer: Layer, tp: int, per_token: int) -> None:
    """Heads are split and at least one is kept; a latent vector is whole on each rank."""
    assert per_token == layer.on_rank(tp).per_token(BF16)


def test_states_are_split() -> None:
    """A state's first axis is cut over the ranks."""
    assert MAMBA.stored(0, BF16).total == 4 * MAMBA.on_rank(4).stored(0, BF16).total


@pytest.mark.parametrize("layer", [layer for layer, _ in KINDS])
def test_every_kind_explains_itself(layer: Layer) -> None:
    """The formula is a phrase with the layer's numbers."""
    assert layer.formula(BF16)


@pytest.mark.parametrize(
    ("layer", "multi_head"), [(FULL, 16_384), (LATENT, 128 * (192 + 128) * 2), (INDEXED, 81_920)]
)
def test_multi_head(layer: Layer, multi_head: int) -> None:
    """A key and a value for every query head."""
    assert multi_head == layer.multi_head().per_token(BF16)


def test_states_keep_their_types() -> None:
    """A cache format changes keys and values, not a state."""
    assert MAMBA.stored(9, BF16) == MAMBA.stored(9, FORMATS["fp8_e5m2"])


CURVES = [
    Curve(((FULL, 32),), BF16),
    Curve(((FULL, 10), (WINDOW, 52)), BF16),
    Curve(((FULL, 6), (MAMBA, 23)), BF16),
    Curve(((CSA, 21), (HCA, 20), (WINDOW, 2)), BF16),
    Curve(((FULL, 4),), FORMATS["kivi2"]),
]


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("budget", [10**6, 10**8, 10**10])
def test_longest_is_the_inverse(curve: Curve, budget: int) -> None:
    """The longest sequence fits on its whole way, and one token more does not."""
    longest = curve.longest(budget)
    if longest is None:
        assert curve.fixed_bytes > budget
        return

    assert curve.peak(longest) <= budget < curve.peak(longest + 1)


@pytest.mark.parametrize("curve", CURVES)
def test_peak_is_the_most_on_the_way(curve: Curve) -> None:
    """No shorter length holds more than the peak."""
    sizes = [curve.bytes(tokens) for tokens in range(700)]

    assert [max(sizes[: tokens + 1]) for tokens in range(0, 700, 37)] == [
        curve.peak(tokens) for tokens in range(0, 700, 37)
    ]


def test_one_figure_a_token_only_where_it_exists() -> None:
    """Windows and steps have no single cost of a token; states are a fixed part."""
    assert [131_072, None, 24_576, None, None] == [curve.per_token for curve in CURVES]
