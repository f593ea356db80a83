"""The sum of a step, part by part, where it is more than a quotient."""

from __future__ import annotations

from math import inf

import pytest

from kvplan.planning.speed.card import card_of
from kvplan.planning.speed.ideal import Ideal
from kvplan.planning.speed.rates import Rates
from kvplan.planning.speed.terms import linear_s, turns
from kvplan.readers.devices import find_device
from tests.planning.speed.plans import plan, work

VLLM_DEALT = {"--enable-expert-parallel": True}
DEALT = {"--ep-size": 8}


def ideal(model: str, engine: str = "vllm", gpus: int = 8, **flags: object) -> Ideal:
    """The work of a plan on H200s."""
    return work(plan(model, "h200", gpus, engine, **flags)).ideal


@pytest.mark.parametrize(
    ("model", "engine", "flags", "favoured"),
    [
        # whole experts on eight ranks
        ("Qwen/Qwen3-235B-A22B", "sglang", DEALT, 7 / 8),
        ("Qwen/Qwen3-235B-A22B", "tensorrt-llm", DEALT, 7 / 8),
        ("openai/gpt-oss-120b", "vllm", VLLM_DEALT, 7 / 8),
        # a part of each expert on every rank
        ("Qwen/Qwen3-235B-A22B", "sglang", {}, 0),
        # routers that are corrected until all experts are drawn alike
        ("deepseek-ai/DeepSeek-R1", "sglang", DEALT, 0),
        ("moonshotai/Kimi-K2.5", "vllm", VLLM_DEALT, 0),
        # experts that are moved until their ranks have as much to do
        ("Qwen/Qwen3-235B-A22B", "sglang", DEALT | {"--enable-eplb": True}, 0),
        ("openai/gpt-oss-120b", "vllm", VLLM_DEALT | {"--enable-eplb": True}, 0),
        # no experts
        ("Qwen/Qwen3-32B", "vllm", {}, 0),
    ],
)
def test_which_experts_fall_unevenly(
    model: str, engine: str, flags: dict[str, object], favoured: float
) -> None:
    """Those that are dealt out whole by a router that nothing keeps even."""
    assert favoured == ideal(model, engine, **flags).favoured


def test_a_step_waits_for_the_fullest_rank() -> None:
    """Experts take so much longer, and nothing else does; a bound does not know of it."""
    dealt = ideal("Qwen/Qwen3-235B-A22B", "sglang", **DEALT)
    even, uneven = linear_s(dealt, Rates(), 64), linear_s(dealt, Rates(uneven=0.8), 64)
    experts = even - linear_s(dealt._replace(experts_read_s=0.0, experts_token_s=0.0), Rates(), 64)

    assert uneven - even == pytest.approx(0.8 * 7 / 8 * experts)


@pytest.mark.parametrize("tokens", [1, 64, 8192])
def test_small_kernels_hide_what_they_move(tokens: int) -> None:
    """A norm takes its start or its bytes, whichever is longer; the first is in a step's fixed part
    already.
    """
    dense = ideal("Qwen/Qwen3-32B", gpus=1)
    starts = dense.layers * 5e-5
    moved = tokens * dense.dense_moved_s
    more = linear_s(dense, Rates(layer_s=5e-5, passes=1.0), tokens) - linear_s(
        dense, Rates(), tokens
    )

    assert more == pytest.approx(max(0.0, moved - starts), abs=1e-12)


@pytest.mark.parametrize(
    ("cards", "tokens", "left"),
    [
        (1, 4096, 1.0),
        # one piece passes four cards, one after the other
        (4, 512, 1.0),
        # two pieces take five turns in place of eight, eight take eleven of thirty-two
        (4, 1024, 5 / 8),
        (4, 4096, 11 / 32),
    ],
)
def test_cards_that_take_turns_work_on_pieces(cards: int, tokens: int, left: float) -> None:
    """llama.cpp's cards with layers of their own: the next piece begins where the last went on."""
    found = ideal("meta-llama/Llama-3.1-70B", "llama.cpp", cards)

    assert left == pytest.approx(turns(found, tokens))


@pytest.mark.parametrize(
    ("engine", "gpus", "flags", "piece"),
    [
        ("llama.cpp", 2, {}, 512),
        ("llama.cpp", 2, {"--ubatch-size": 256}, 256),
        ("ollama", 2, {}, 2048),
        ("llama.cpp", 1, {}, inf),
        ("vllm", 2, {}, inf),
    ],
)
def test_the_pieces_of_a_prompt(
    engine: str, gpus: int, flags: dict[str, object], piece: float
) -> None:
    """What goes on to the next card at a time; nothing does where there is none, or all have it."""
    assert piece == ideal("Qwen/Qwen3-8B", engine, gpus, **flags).piece


@pytest.mark.parametrize(
    ("gpu", "kind", "multiplied", "peak"),
    [
        # blocks of integers as such; sums of 16 bits at half of that, also on GeForce
        ("rtx-3090", "ggml", "ggml", 284_700_000_000_000),
        ("rtx-3090", "ggml 16", "ggml 16", 142_350_000_000_000),
        ("a40", "ggml 16", "ggml 16", 149_700_000_000_000),
        ("rtx-3090", "16", "16", 71_200_000_000_000),
        # no units for integers: widened
        ("v100-sxm-32gb", "ggml", "ggml 16", 125_000_000_000_000),
        ("mi300x", "ggml", "ggml", 2_614_000_000_000_000),
        ("apple-m4-max", "ggml", "ggml 16", 0),
    ],
)
def test_ggml_multiplies_in_types_of_its_own(
    gpu: str, kind: str, multiplied: str, peak: int
) -> None:
    """By the card's units."""
    card = card_of(find_device(gpu)[0])
    assert card is not None

    assert (multiplied, peak) == (card.multiplies(kind), card.peak(kind))


@pytest.mark.parametrize(
    ("engine", "quantization", "kind"),
    [
        ("llama.cpp", "q4_k_m", "ggml"),
        ("llama.cpp", "q8_0", "ggml"),
        ("llama.cpp", "", "ggml 16"),
        ("vllm", "", "16"),
    ],
)
def test_kinds_of_files(engine: str, quantization: str, kind: str) -> None:
    """What a file of so many bits an element is multiplied in on a card of NVIDIA."""
    flags = {"--quantization": quantization} if quantization else {}
    found = ideal("Qwen/Qwen3-8B", engine, 1, **flags)

    assert kind == found.dense_kind


@pytest.mark.parametrize(("engine", "flags"), [("vllm", VLLM_DEALT), ("sglang", DEALT)])
def test_moving_experts_is_said(engine: str, flags: dict[str, object]) -> None:
    """Its memory is not counted; the command keeps the flag."""
    asked = plan("Qwen/Qwen3-235B-A22B", "h200", 8, engine, **flags | {"--enable-eplb": True})

    assert any("--enable-eplb" in warning for warning in asked.warnings)
    assert "--enable-eplb" in asked.command
