"""What --fit chooses: nothing where all fits, a shorter context, experts, then whole layers."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.units import GIB, MIB
from kvplan.engines.llamacpp.compute import CARD_CONTEXT
from kvplan.engines.llamacpp.plan import LlamaPlan


def plan(model: str, gpu_memory: str, gpus: int = 1, **flags: Any) -> LlamaPlan:
    found = kvplan.fit(
        model, gpu_memory=gpu_memory, gpus=gpus, engine="llama.cpp", offline=True,
        quantization="Q4_K_M", **flags,
    ).plan  # fmt: skip
    assert isinstance(found, LlamaPlan)
    return found


def left(found: LlamaPlan, gpu_memory: int) -> int:
    return gpu_memory - CARD_CONTEXT - found.layout.fullest.used


def test_nothing_is_changed_where_all_fits() -> None:
    """The trained context and every layer."""
    found = plan("llama-3.1-8b", "40GiB")

    assert 131072 == found.settings.cells
    assert 33 == found.layout.placement.offloaded
    assert not any("--fit" in said for said in found.warnings)


def test_context_is_shortened_first() -> None:
    """To whole 256 cells, so that 1,024 MiB stay free and less than 512 cells more would."""
    found = plan("llama-3.1-8b", "12GiB")
    cell = 131072 + 4 * found.settings.ubatch

    assert 0 == found.settings.cells % 256
    assert 33 == found.layout.placement.offloaded
    assert 1024 * MIB <= left(found, 12 * GIB) < 1024 * MIB + 512 * cell


def test_a_given_context_is_kept() -> None:
    """Layers go to host memory in its place."""
    found = plan("llama-3.1-8b", "8GiB", c=32768)

    assert 32768 == found.settings.cells
    assert 0 < found.layout.placement.host.blocks < 32
    assert any("layers, with their caches, in host memory" in said for said in found.warnings)


def test_experts_go_before_layers() -> None:
    """A mixture keeps attention and caches on the card."""
    found = plan("qwen3-30b-a3b", "16GiB", c=32768)

    assert 0 < found.layout.request.experts < 48
    assert 0 == found.layout.placement.host.blocks


def test_layers_that_were_given_are_kept() -> None:
    """--n-gpu-layers forbids moving layers: it does not start, and what would is named."""
    found = plan("llama-3.1-8b", "8GiB", c=32768, ngl="all")

    assert not found.starts
    assert found.reason is not None
    assert "--n-gpu-layers" in found.reason
    assert "--ctx-size" in found.reason


def test_the_nearest_values_start() -> None:
    """What the refusal names does start, and one step more does not."""
    reason = plan("llama-3.1-8b", "8GiB", c=65536, ngl="all").reason or ""
    words = reason.split("The nearest that starts: ")[1].rstrip(".").replace(" or ", " ").split()
    named = dict(zip(words[::2], map(int, words[1::2]), strict=True))

    assert plan("llama-3.1-8b", "8GiB", c=named["--ctx-size"], ngl="all").starts
    assert not plan("llama-3.1-8b", "8GiB", c=named["--ctx-size"] + 256, ngl="all").starts
    assert plan("llama-3.1-8b", "8GiB", c=65536, ngl=named["--n-gpu-layers"]).starts
    assert not plan("llama-3.1-8b", "8GiB", c=65536, ngl=named["--n-gpu-layers"] + 1).starts


@pytest.mark.parametrize("cards", [2, 3])
def test_several_cards_share_the_layers(cards: int) -> None:
    """Every card keeps its target free."""
    found = plan("llama-3.3-70b", "24GiB", cards)

    assert cards == len(found.layout.cards)
    assert all(card.used + 1024 * MIB <= 24 * GIB - CARD_CONTEXT for card in found.layout.cards)


def test_a_smaller_target() -> None:
    """--fit-target in MiB."""
    usual, more = plan("llama-3.1-8b", "12GiB"), plan("llama-3.1-8b", "12GiB", fit_target="256")

    assert more.settings.cells - usual.settings.cells == pytest.approx(768 * MIB / 131072, rel=0.1)


def test_a_stated_pool_gives_the_context() -> None:
    """--kv-pool 4GiB holds 32,768 cells of 131,072 B."""
    found = kvplan.fit(
        "llama-3.1-8b", gpu="rtx-4090", engine="llama.cpp", kv_pool="4GiB", np=1, offline=True
    ).plan

    assert 32768 == found.pool.kv_cells
    assert 4 * GIB == found.ledger.pool_bytes


def test_slots_and_capacity() -> None:
    """Slots apart have a part each; what a sequence lacks is said in slots or cells."""
    found = plan("llama-3.1-8b", "24GiB", c=32768, np=4)

    assert (4, "--parallel") == tuple(found.capacity(8192))
    assert (0, "--ctx-size") == tuple(found.capacity(8193))
    assert (8192, 0) == (found.longest(4), found.longest(5))
    assert "there are 4" in (found.shortfall(8192, 5) or "")
    assert "a slot has 8,192" in (found.shortfall(9000, 4) or "")


@pytest.mark.parametrize(
    ("gpu", "quantization", "starts"),
    [("gb10", "BF16", False), ("gb10", "Q4_K_M", True), ("rtx-4090", "BF16", True)],
)
def test_one_memory_is_given_once(gpu: str, quantization: str, *, starts: bool) -> None:
    """A 70B in 16 bits is no 122 GiB of a GB10 and 15 GiB of its host, which is the same memory."""
    found = kvplan.fit(
        "llama-3.3-70b", gpu=gpu, engine="llama.cpp", np=1, ctx_size=8192, offline=True,
        quantization=quantization,
    )  # fmt: skip

    assert starts == found.plan.starts
    assert starts or "one memory of 121.6 GiB" in (found.reason or "")
