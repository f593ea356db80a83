"""Defaults that follow from the card's size, as SGLang's own code gives them."""

from __future__ import annotations

import pytest

from kvplan.core.version import Version
from kvplan.engines.sglang.fraction import (
    Size,
    captured_sizes,
    default_batch,
    default_chunk,
    default_fraction,
)

# Release, MiB of the card, TP, speculation: chunk, largest captured batch, fraction. From 0.5.4 on
# SGLang's _handle_gpu_memory_settings was run with these arguments.
DEFAULTS = [
    ("0.5.4", 24564, 1, "", 2048, 16, 0.848),
    ("0.5.4", 24564, 8, "", 2048, 80, 0.806),
    ("0.5.4", 81559, 1, "", 8192, 256, 0.835),
    ("0.5.4", 81559, 1, "EAGLE", 8192, 256, 0.81),
    ("0.5.4", 81559, 8, "STANDALONE", 8192, 512, 0.743),
    ("0.5.4", 143771, 1, "", 8192, 256, 0.907),
    ("0.5.4", 183359, 8, "", 16384, 512, 0.852),
    ("0.5.12", 24564, 1, "", 2048, 24, 0.833),
    ("0.5.12", 81559, 1, "", 8192, 256, 0.83),
    ("0.5.12", 81559, 1, "EAGLE", 8192, 256, 0.779),
    ("0.5.12", 81559, 8, "", 8192, 512, 0.812),
    ("0.5.12", 143771, 8, "", 8192, 512, 0.893),
    ("0.5.12", 183359, 1, "", 16384, 512, 0.854),
    ("0.5.23", 32607, 1, "", 4096, 48, 0.777),
    ("0.4.3", 81559, 1, "", 8192, 160, 0.88),
    ("0.4.6", 81559, 8, "", 8192, 160, 0.81),
    ("0.4.9", 24564, 1, "", 2048, 8, 0.879),
    ("0.4.9", 81559, 8, "", 8192, 160, 0.831),
]


@pytest.mark.parametrize(
    ("release", "memory", "tp", "speculative", "chunk", "batch", "share"), DEFAULTS
)
def test_defaults(
    release: str, memory: int, tp: int, speculative: str, chunk: int, batch: int, share: float
) -> None:
    """Chunk, batch and fraction of a card of so many MiB."""
    version = Version.parse(release)
    size = Size(memory_mib=memory, tp=tp, speculative=speculative)

    assert chunk == default_chunk(version, size)
    assert batch == default_batch(version, size, None)
    assert share == default_fraction(version, size, chunk, batch)


def test_latent_attention_reserves_more_for_prefill_graphs() -> None:
    """1.5 GiB in place of 8 MiB a captured size (0.5.12)."""
    version = Version.parse("0.5.12")
    plain, latent = (Size(memory_mib=81559, tp=8, latent=kind) for kind in (False, True))

    assert 0.812 == default_fraction(version, plain, 8192, 512)
    assert 0.799 == default_fraction(version, latent, 8192, 512)


def test_a_larger_tower_takes_more() -> None:
    """ViT-L/14 takes 5% off; twice its weights 14.5%."""
    version, tower = Version.parse("0.5.12"), 12 * 24 * 1024**2
    once, twice = (
        Size(memory_mib=81559, tp=1, multimodal=True, tower_parameters=count * tower)
        for count in (1, 2)
    )

    assert 0.83 * 0.95 == pytest.approx(default_fraction(version, once, 8192, 256))
    assert 0.83 * 0.95 * 0.9 == pytest.approx(default_fraction(version, twice, 8192, 256))


@pytest.mark.parametrize(("most", "count"), [(2048, 42), (8192, 58), (32, 8), (0, 0)])
def test_captured_sizes(most: int, count: int) -> None:
    """Steps of 4, 16, 32, 64, 256 and 512 tokens."""
    assert count == captured_sizes(most)
