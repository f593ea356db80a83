"""The estimate: what it says of itself, how it grows, what clients see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadQuestion, BadValue
from kvplan.core.step import AttentionCost, Knot, StepCost
from kvplan.planning.speed import Drafting, disaggregated, drafted, estimate, overtakes, saturates
from kvplan.planning.speed.batching import Batching
from kvplan.planning.speed.calibration import calibrated, era_of, family_of, table
from kvplan.planning.speed.serving import (
    closed_loop,
    filled_up,
    full_queue,
    prompt_alone_s,
    seen_tokens,
    static_batch,
)
from tests.planning.speed.plans import plan

# 10 ms for weights, 1 µs a new token beyond, 1 µs a context token, 0.1 ms a sequence.
COST = StepCost(
    fixed_s=0.002,
    sequence_s=1e-4,
    linear=(Knot(1, 0.008), Knot(512, 0.008), Knot(513, 0.010), Knot(8192, 0.090)),
    attention=(AttentionCost(window=None, read_s=1e-6, pair_s=1e-9),),
    source="a test's",
)


@pytest.mark.parametrize(
    ("card", "family"),
    [
        ("h100-sxm-80gb", "hopper"),
        ("gh200", "hopper"),
        ("a100-sxm-40gb", "ampere"),
        ("b200", "blackwell"),
        ("gb300", "blackwell"),
        ("rtx-4090", "geforce"),
        ("l4", "geforce"),
        ("v100s-pcie-32gb", "volta"),
        ("mi300x", "cdna"),
        ("apple-m4", ""),
    ],
)
def test_a_card_belongs_to_a_family(card: str, family: str) -> None:
    """By the beginning of its name; a card of no family has the general rates."""
    assert family == family_of(card)


@pytest.mark.parametrize(
    ("version", "era"),
    [("0.7.3", "vllm<0.8"), ("0.8.0", "vllm"), ("0.32.0", "vllm"), (None, "vllm")],
)
def test_an_engine_has_eras(version: str | None, era: str) -> None:
    """VLLM's first scheduler is an era of its own; a release that is not named is the last one."""
    assert era == era_of("vllm", version)


def test_what_was_not_measured_says_so_and_is_wider() -> None:
    """An engine on a card without data has a wider band than with, and neither known a wider."""
    known = calibrated("vllm", "0.12.0", "h100-sxm-80gb", "16", "16", False)
    card = calibrated("vllm", "0.12.0", "mi300x", "16", "16", False)
    neither = calibrated("transformers", None, "mi300x", "16", "16", False)

    assert known.calibrated
    assert not card.calibrated
    assert not neither.calibrated
    assert known.error < card.error < neither.error
    assert "none of vllm on mi300x" in card.source
    assert "of them of vllm on hopper cards" in known.source


def test_shares_are_shares() -> None:
    """No product of factors is more than all of a peak."""
    for engine in ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "none"):
        for card in ("h100-sxm-80gb", "a100-sxm-80gb", "b200", "rtx-4090", "t4", "mi300x", "x"):
            rates = calibrated(engine, None, card, "fp8", "fp4", True).rates
            assert all(
                0 < getattr(rates, name) <= 1
                for name in rates.__dataclass_fields__
                if name.startswith("share_")
            )


def test_the_table_tells_what_it_is_from() -> None:
    """Rows, seed, models kept aside, reasons of what was left out."""
    said = table()

    assert said["rows"] > 1000
    assert said["seed"]
    assert len(said["aside"]) >= 6
    assert sum(said["left_out"].values()) + said["rows"] < 7966
    assert {"dense", "mixture"} <= said["errors"].keys()


@pytest.mark.parametrize(
    ("prompt", "output", "window", "seen"),
    [(100, 100, None, 150.0), (1000, 100, 512, 512), (100, 100, 300, 150.0), (0, 100, 50, 37.5)],
)
def test_a_window_stops_what_is_seen(
    prompt: int, output: int, window: int | None, seen: float
) -> None:
    """The mean over the output of what a step sees: it grows until a window is full."""
    assert seen == seen_tokens(prompt, output, window)


def test_one_client_sees_a_prompt_and_steps() -> None:
    """Alone: the prompt's step before the first token, decode steps after it."""
    seen = closed_loop(COST, Batching(), prompt=1000, output=101, clients=1, capacity=8)

    assert pytest.approx(COST.decode_s(1, 1050), rel=0.01) == seen.tpot_s
    assert prompt_alone_s(COST, 1000, 8192) <= seen.ttft_s < 2 * prompt_alone_s(COST, 1000, 8192)
    assert seen.queue_s == 0


def test_prompts_ride_between_the_steps_of_others() -> None:
    """A cycle of 32 clients has 32 prompts in it: each token waits for its part of 31 of them."""
    seen = closed_loop(COST, Batching(), prompt=2000, output=201, clients=32, capacity=64)
    step = COST.decode_s(32, 2100)
    prompt = 0.001 / 100 * 2000 + 1e-9 * 2000 * 2001 / 2  # beside decoding tokens

    assert step < seen.tpot_s < step + 31 * (prompt + 0.01) / 200
    assert pytest.approx(32 / (seen.ttft_s / 201 + seen.tpot_s * 200 / 201), rel=0.01) == (
        seen.tokens_per_s
    )


def test_equal_clients_of_a_scheduler_that_puts_prompts_first_move_in_waves() -> None:
    """Each waits for its part of the wave's prompts, and is held up by the rest alone."""
    asked: dict[str, Any] = {"prompt": 2000, "output": 101, "clients": 32, "capacity": 64}
    waves = closed_loop(COST, Batching(apart=True, waves=0.5), **asked)
    spread = closed_loop(COST, Batching(apart=True, waves=0.5), **asked, drawn=True)

    assert waves.ttft_s > 5 * spread.ttft_s
    assert waves.tpot_s < spread.tpot_s


def test_more_clients_than_fit_wait_in_the_queue() -> None:
    """Twice what fits waits one cycle, and no more tokens come of it."""
    full = closed_loop(COST, Batching(), prompt=500, output=100, clients=16, capacity=16)
    over = closed_loop(COST, Batching(), prompt=500, output=100, clients=32, capacity=16)

    assert full.tokens_per_s == over.tokens_per_s
    assert full.tpot_s == over.tpot_s
    assert pytest.approx(full.ttft_s + 99 * full.tpot_s) == over.queue_s


def test_a_full_queue_serves_more_than_clients_that_wait() -> None:
    """The most that is served: nobody pauses between a last token and the next prompt."""
    asked: dict[str, Any] = {"prompt": 500, "output": 100, "capacity": 16}
    queued = full_queue(COST, Batching(), **asked)
    clients = closed_loop(COST, Batching(), **asked, clients=16)

    assert queued.tokens_per_s > 0.95 * clients.tokens_per_s


@pytest.mark.parametrize(("requests", "batches"), [(16, 1), (17, 2), (24, 2), (64, 4), (65, 5)])
def test_a_run_of_equal_lengths_is_batches(requests: int, batches: int) -> None:
    """Whole ones one after the other, and a last one of what is left, which costs its steps too."""
    asked: dict[str, Any] = {"prompt": 500, "output": 100, "requests": requests}
    found = full_queue(COST, Batching(), **asked, capacity=16)
    left = requests % 16 or 16
    last = full_queue(COST, Batching(), **asked | {"requests": left}, capacity=left)

    assert requests * 100 / found.tokens_per_s == pytest.approx(
        (batches - 1) * found.tpot_s * 100 + last.tpot_s * 100
    )
    assert found.batch == min(16, requests)


def test_no_more_run_than_there_are() -> None:
    """A run of fewer requests than fit is one batch of them."""
    asked: dict[str, Any] = {"prompt": 500, "output": 100, "requests": 16}
    whole = full_queue(COST, Batching(), **asked, capacity=16)

    assert full_queue(COST, Batching(), **asked, capacity=99) == whole
    assert whole.batch == 16


@pytest.mark.parametrize(
    ("batch", "size"), [(1, 1), (3, 4), (64, 64), (65, 128), (128, 128), (129, 129)]
)
def test_a_step_is_filled_up_to_a_graph(batch: int, size: int) -> None:
    """To the next size that was captured; beyond the largest it runs as it is."""
    assert size == filled_up(batch, (1, 2, 4, 64, 128))


def test_filled_steps_cost_what_they_are_filled_to() -> None:
    """600 sequences in graphs of 1,000: each step without prompts pays for 400 that are not."""
    asked: dict[str, Any] = {"prompt": 500, "output": 100, "capacity": 600, "requests": 600}
    batching = Batching(budget=5000)  # ten prompts a step: 60 of 100 steps have some
    found = full_queue(COST, batching, **asked)
    filled = full_queue(COST, batching, **asked, sizes=(1, 1000))

    more = COST.linear_s(1000) - COST.linear_s(600)
    assert filled.tpot_s * 100 == pytest.approx(found.tpot_s * 100 + (100 - 60) * more)


def test_a_group_has_its_prompts_at_the_same_time() -> None:
    """Ranks that step together are not held up by each other where all begin together."""
    asked: dict[str, Any] = {"prompt": 500, "output": 100, "capacity": 16}
    held, free = Batching(group=8, held_up=8.0), Batching()

    assert full_queue(COST, held, **asked, requests=16) == full_queue(
        COST, free, **asked, requests=16
    )
    assert full_queue(COST, held, **asked).tpot_s > full_queue(COST, free, **asked).tpot_s


def test_a_static_batch_is_its_prompts_and_its_steps() -> None:
    """``generate``: all prompts in one step, then the steps."""
    found = static_batch(COST, prompt=100, output=50, batch=4)

    first = 0.002 + 4e-4 + 0.008 + 4 * 1e-9 * 100 * 101 / 2
    assert pytest.approx(first) == found.ttft_s
    assert pytest.approx(200 / (first + 50 * COST.decode_s(4, 125))) == found.tokens_per_s


def test_the_cache_overtakes_the_weights() -> None:
    """The least batch whose caches take as long as all that a batch shares."""
    # 1.1 ms each at 1,000 tokens against 10 ms.
    assert overtakes(COST, 1000) == 10
    assert overtakes(replace(COST, attention=(), sequence_s=0.0), 1000) is None


def test_throughput_saturates() -> None:
    """From some batch on, twice as many sequences gain less than a tenth."""
    found = saturates(COST, 1000)
    assert found is not None

    def gained(batch: int) -> float:
        return 2 * COST.decode_s(batch, 1000) / COST.decode_s(2 * batch, 1000)

    assert gained(found) < 1.1 <= gained(found // 2)


def test_drafts_bring_tokens_and_cost_their_passes() -> None:
    """1 + a + a² + a³ tokens a step; each pass is a part of the model's own."""
    drafting = Drafting(tokens=3, acceptance=0.5, share=0.1)

    assert drafting.tokens_a_step == 1.875
    assert drafted(COST, drafting).decode_s(1, 1000) > 1.3 * COST.decode_s(1, 1000)


def test_fit_estimates_drafts_with_an_acceptance() -> None:
    """The flags say how many are drafted, the question how many are accepted."""
    asked: dict[str, Any] = {
        "gpu": "h200",
        "gpus": 8,
        "concurrency": 4,
        "offline": True,
        "speculative_config": '{"method": "mtp", "num_speculative_tokens": 1}',
    }
    without = kvplan.fit("deepseek-ai/DeepSeek-R1", **asked).to_dict()["speed"]["estimate"]
    with_ = kvplan.fit("deepseek-ai/DeepSeek-R1", acceptance=0.8, **asked).to_dict()
    found = with_["speed"]["estimate"]

    assert found["drafting"] == {"tokens": 1, "acceptance": 0.8, "tokens_per_step": 1.8}
    gained = found["tokens_per_s_per_sequence"] / without["tokens_per_s_per_sequence"]
    assert 1.2 < gained < 1.8


def test_fit_estimates_a_loop() -> None:
    """Prompt, output and clients: what each of them sees."""
    answer = kvplan.fit(
        "Qwen/Qwen3-32B", gpu="h100", gpus=2, prompt=1024, output=512, concurrency=64, offline=True
    ).to_dict()
    found = answer["speed"]["estimate"]

    assert answer["capacity"]["context_tokens"] == 1536
    # Published for this: 28.5 ms (vLLM 0.12.0, H100, 64 clients), a row kept for calibration.
    assert pytest.approx(0.0285, rel=0.15) == found["tpot_s"]
    assert found["tpot_s"] > found["decode_step_s"] * 0.95
    assert found["ttft_s"] > found["prefill_s"]
    assert 0 < found["error"] < 1


def test_an_estimate_is_given_also_where_it_does_not_fit() -> None:
    """70 billion parameters do not fit one H100; how fast they would be is still said."""
    answer = kvplan.fit("meta-llama/Llama-3.1-70B", gpu="h100", concurrency=8, offline=True)
    found = answer.to_dict()["speed"]["estimate"]

    assert not answer.fits
    assert found["decode_step_s"] > 0.04


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"output": 100}, "--output without --prompt says nothing of a request."),
        ({"prompt": 0, "output": 1}, "--prompt 0 is no request."),
        ({"acceptance": 1.5}, "--acceptance 1.5 is not the probability that a draft is accepted."),
        ({"acceptance": "x"}, "--acceptance x is not the probability that a draft is accepted."),
    ],
)
def test_a_wrong_workload(asked: dict[str, Any], said: str) -> None:
    """One sentence each."""
    with pytest.raises(BadValue) as wrong:
        kvplan.fit("Qwen/Qwen3-8B", gpu="h100", offline=True, **asked)

    assert said == wrong.value.message


def test_prefill_and_decoding_apart() -> None:
    """The cache of a prompt crosses the link; a slower link shows in the first token alone."""
    first, second = plan("Qwen/Qwen3-32B", "h100", 2), plan("Qwen/Qwen3-32B", "h200")
    asked: dict[str, Any] = {"prompt": 8000, "output": 500, "batch": 32}
    fast = disaggregated(first, second, **asked, link_bytes_per_s=50_000_000_000)
    slow = disaggregated(first, second, **asked, link_bytes_per_s=500_000_000)
    assert fast is not None
    assert slow is not None

    assert pytest.approx(8000 * 262_144, rel=0.01) == fast.moved_bytes
    assert fast.tpot_s == slow.tpot_s
    assert slow.ttft_s > fast.ttft_s + 2
    assert estimate(second) is not None
    assert fast.prefills_per_decoder > 0


@pytest.mark.parametrize(
    ("model", "engine", "flags", "share", "rate"),
    [
        ("Qwen/Qwen3-32B", "vllm", {"--cpu-offload-gb": "45"}, 0.75, 31e9),
        ("meta-llama/Llama-3.1-8B", "llama.cpp", {"--n-gpu-layers": "16"}, 0.5, 50e9),
    ],
)
def test_weights_that_are_not_on_the_card_are_read_elsewhere(
    model: str, engine: str, flags: dict[str, Any], share: float, rate: float
) -> None:
    """Over the link, or by the host's processor; the answer says so and widens."""
    part, whole = plan(model, "rtx-4090", 1, engine, **flags), plan(model, "rtx-4090", 1, engine)
    first, second = estimate(part), estimate(whole)
    assert first is not None
    assert second is not None
    assert part.model.weights is not None
    moved = share * part.model.weights.num_bytes / rate

    assert pytest.approx(moved, rel=0.3) == first.cost.fixed_s - second.cost.fixed_s
    assert first.error > second.error
    assert not first.calibrated
    assert "% of the weights from" in first.source


def test_a_card_that_is_like_another_has_its_rates() -> None:
    """A card of one's own (kvplan.toml) with another memory steps as the one that it is like."""
    asked = plan("Qwen/Qwen3-8B", "h100-sxm-80gb")
    device = replace(asked.node.device, name="ours", like="h100-sxm-80gb")
    own = estimate(replace(asked, node=replace(asked.node, device=device)))

    assert estimate(asked) == own


@pytest.mark.parametrize("gpu", ["h100-nvl", "m4-max-64gb"])
def test_a_prompt_is_not_timed_where_no_source_says_what_the_card_computes(gpu: str) -> None:
    """Its reading alone would make the slower card the faster one; a decode step is told."""
    found = kvplan.fit(
        "llama-3.1-8b", gpu=gpu, engine="llama.cpp", prompt="4k", output=100, concurrency=2
    ).to_dict()["speed"]["estimate"]

    assert found["prefill_s"] is None
    assert "ttft_s" not in found
    assert found["decode_step_s"] > 0
    with pytest.raises(BadQuestion, match="computes a second is in no source"):
        kvplan.simulate("llama-3.1-8b", gpu=gpu, engine="llama.cpp", rate=1, requests=2)
    advice = kvplan.advise("llama-3.1-8b", gpu=gpu, users=1, context="4k", tpot="1s")
    assert advice.best is None
