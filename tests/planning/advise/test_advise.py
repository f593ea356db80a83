"""Answers of advise: options with reasons, exits, what to relax, formats that are allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.cli import run
from kvplan.core.errors import KvplanError

SMALL: dict[str, Any] = {
    "users": 4,
    "context": "8k",
    "gpu": "l40s,h100-sxm-80gb",
    "offline": True,
}


def ask(model: Any = "llama-3.1-8b", **asked: Any) -> kvplan.AdviseAnswer:
    return kvplan.advise(model, **{**SMALL, **asked})


def test_every_loser_says_why() -> None:
    """The best has no reason against it, every other has one."""
    options = ask(tpot="50ms").to_dict()["options"]

    assert options[0]["why_not"] is None
    assert all(option["why_not"] for option in options[1:])
    assert all(option["fits"] == (not option["misses"]) for option in options if option["engine"])


def test_the_order_is_by_cost() -> None:
    """Among those that meet the goals."""
    costs = [o["cost_per_hour"] for o in ask().to_dict()["options"] if o["fits"]]

    assert sorted(costs) == costs


def test_the_plan_is_fits_own() -> None:
    """What it says of memory is what fit says of the same start."""
    best = ask().to_dict()["options"][0]
    fit = kvplan.fit(
        best["model"], gpu=best["gpu"], gpus=best["gpus"], context="8k", max_model_len=8192,
        offline=True, **({} if best["cache"] == "auto" else {"kv_cache_dtype": best["cache"]}),
    )  # fmt: skip

    assert fit.sequences == best["sequences"]
    assert fit.plan.command == best["command"]


def test_published_copies_alone() -> None:
    """A 16-bit model has its FP8 copy as an option; one without a copy has none."""
    with_copy = {o["weights"] for o in ask("qwen3-8b").to_dict()["options"]}
    without = {o["weights"] for o in ask("llama-2-7b", context="4k").to_dict()["options"]}
    allowed = ask("llama-2-7b", context="4k", allow_quantise=True).to_dict()["options"]

    assert {"16 bits", "fp8"} == with_copy
    assert {"16 bits"} == without
    assert any("--quantization fp8" in (o["command"] or "") for o in allowed)


def test_nothing_meets() -> None:
    """The nearest is first, and each goal says how far it had to give way."""
    answer = ask(gpu="l40s", tpot="1ms", ttft="3s")
    relax = {row.goal: row for row in answer.relax}

    assert answer.best is None
    assert answer.to_dict()["best"] is None
    assert {"--tpot"} == set(relax)
    assert relax["--tpot"].needed > 0.001
    assert ask(gpu="l40s", tpot=relax["--tpot"].needed * 1.02, ttft="3s").best is not None


def test_fewer_users_are_a_way_out() -> None:
    """Where cards are what lacks, so many users are served; one more is not."""
    answer = ask(users=100, gpu="l40s", max_gpus=1)
    fewer = next(row for row in answer.relax if row.goal == "--users")

    assert ask(users=int(fewer.needed), gpu="l40s", max_gpus=1).best is not None
    assert ask(users=int(fewer.needed) + 1, gpu="l40s", max_gpus=1).best is None


def test_a_budget_needs_a_price() -> None:
    """A card that nobody lists cannot be within a budget; with --price it can."""
    assert ask(gpu="gb10", budget="5/h").best is None
    assert ask(gpu="gb10", budget="5/h", price=1).best is not None
    assert ask(gpu="gb10").best is not None


def test_rupees() -> None:
    """Costs are dollars times the rate, and the order is the same."""
    dollars, rupees = ask(), ask(currency="INR", exchange_rate=84)

    assert [o.gpu for o in dollars.options] == [o.gpu for o in rupees.options]
    assert pytest.approx(84 * (dollars.options[0].outcome.per_hour or 0)) == (  # type: ignore[union-attr]
        rupees.options[0].outcome.per_hour  # type: ignore[union-attr]
    )


def test_an_api_beside_it() -> None:
    """Break-even: the API costs as much as the cards."""
    found = ask(api="gpt-5-mini", prompt=2000, output=200, hit_rate=0.5).to_dict()
    api, best = found["hosted"], found["options"][0]

    assert api["per_request_cached"] < api["per_request"]
    assert pytest.approx(best["cost_per_hour"]) == (
        api["break_even_requests_per_s"] * 3600 * api["per_request_cached"]
    )


def test_room_for_a_percentile_has_a_risk() -> None:
    """Sizing below the peak takes fewer bytes, and says how often sequences outgrow them."""
    lengths: dict[str, Any] = {"prompt": "lognormal:3000,1.2", "output": 300, "users": 30}
    lengths["context"] = None
    peak, median = ask(**lengths), ask(**lengths, size_at="p50")

    assert peak.risk is None
    assert median.risk is not None
    assert 0 <= median.risk <= 1
    assert median.options[0].outcome.sequences > peak.options[0].outcome.sequences  # type: ignore[union-attr]


def test_old_cards() -> None:
    """VLLM does not run on a V100: llama.cpp does where the card is named, else it is refused."""
    named = kvplan.advise("llama-3.1-8b", users=2, context="4k", gpu="v100-sxm-16gb", offline=True)
    refused = kvplan.advise(
        "llama-3.1-8b",
        users=2,
        context="4k",
        gpu="v100-sxm-16gb",
        engine="vllm",
        offline=True,
    )

    assert "llama.cpp" == named.options[0].to_dict()["engine"]
    assert "compute capability 7.5" in (refused.options[0].why_not or "")


def test_engine_flags_hold_for_all() -> None:
    """A flag that is given is in every launch, and one of ranks leaves out other layouts."""
    answer = ask(gpu="h100-sxm-80gb", tensor_parallel_size=2, max_num_seqs=64)
    launches = [o.to_dict()["launch"] for o in answer.options]

    assert {2} == {launch["--tensor-parallel-size"]["value"] for launch in launches}
    assert {64} == {launch["--max-num-seqs"]["value"] for launch in launches}


def test_several_models() -> None:
    """The cheapest of them wins, and each is named."""
    answer = ask(["llama-3.1-8b", "qwen3-32b"])

    assert {"meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B"} <= {o.model for o in answer.options}
    assert "meta-llama/Llama-3.1-8B" == answer.options[0].model


def test_longer_than_the_model() -> None:
    """No engine takes a context that the model does not declare."""
    answer = ask("gpt2", context="32k")

    assert answer.best is None
    assert "32,768 tokens are more than the 1,024" in (answer.options[0].why_not or "")


def test_a_trace() -> None:
    """Its lengths, and its rate where nothing else says who comes."""
    pytest.importorskip("numpy")
    rows = [
        {"timestamp": i * 500, "input_length": 1000 + i, "output_length": 100} for i in range(101)
    ]
    goal = ask(trace=rows, users=None, context=None).goal

    assert goal.rate_per_s == pytest.approx(2.0)
    assert goal.prompt is not None
    assert goal.output is not None
    assert (1050, 100) == (goal.prompt.mean, goal.output.mean)
    with pytest.raises(KvplanError, match="A trace has its own lengths"):
        ask(trace=rows, prompt=5)


def test_memory_of_a_card_that_is_named() -> None:
    """Where the driver's figure is not known, it is given; of several cards it is of none."""
    given = ask("gpt-oss-20b", gpu="strix-halo", gpu_memory="96GiB", max_gpus=1)

    assert given.best is not None
    for wrong in ({"gpu": "l4,l40s"}, {"gpu": None}):
        with pytest.raises(KvplanError, match="--gpu-memory is of"):
            ask(gpu_memory="96GiB", **wrong)


@pytest.mark.parametrize("form", ["compose", "k8s"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_is_written_starts_the_same(
    form: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fit --from reads the manifest back: the same engine, model, flags and capacity."""
    path = tmp_path / ("compose.yaml" if form == "compose" else "deploy.yaml")
    words = ["advise", "qwen3-8b", "--users", "60", "--context", "16k", "--gpu", "h100-sxm-80gb",
             "--engine", engine, "--max-gpus", "8", "-o", str(path), "--json"]  # fmt: skip
    status = run(words)
    best = json.loads(capsys.readouterr().out)["options"][0]
    name = f"{path}#qwen3-8b-0" if form == "compose" and best["replicas"] > 1 else str(path)
    read = kvplan.fit(from_=name, gpu="h100-sxm-80gb", context="16k", offline=True)

    assert 0 == status
    assert best["command"] == read.plan.command
    assert best["sequences"] == best["replicas"] * read.sequences


def test_two_hosts_are_no_container() -> None:
    """A replica that one host does not hold has no manifest, and the sentence says what has."""
    from kvplan.planning.advise.deploy import emit

    answer = kvplan.advise("deepseek-v3", users=4, context="8k", gpu="h100-sxm-80gb", offline=True)
    best = answer.best
    assert best is not None
    assert best.outcome is not None
    assert 16 == best.outcome.sized.cards
    with pytest.raises(KvplanError, match="takes two hosts"):
        emit(best.outcome, "k8s")


def test_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    """0 where something meets the goals, 1 where nothing does, 2 for a wrong question."""
    words = [
        "advise",
        "llama-3.1-8b",
        "--gpu",
        "l40s",
        "--users",
        "2",
        "--context",
        "4k",
    ]

    assert 0 == run(words)
    assert 1 == run([*words, "--tpot", "1ms"])
    assert "Relax" in capsys.readouterr().out
    assert 2 == run([*words, "--users", "none"])
    assert 2 == run([*words, "--emit", "smoke"])


def test_a_mixture_deals_its_experts() -> None:
    """Attention by rank and experts over all of them is among the layouts, and it starts."""
    answer = kvplan.advise("deepseek-v3", users=100, context="16k", gpu="b200", offline=True)
    flags = {o.to_dict()["command"] for o in answer.options}

    assert any("--enable-expert-parallel" in (command or "") for command in flags) or any(
        one.sized.candidate.layout.experts for one in answer.frontier
    )


def test_squeezed_where_it_saves_a_replica() -> None:
    """Nine of ten fit with the defaults; more of the card holds the tenth."""
    answer = kvplan.advise(
        "qwen3-8b", users=10, context="8k", gpu="rtx-4090", max_gpus=1, offline=True
    )
    sixteen = next(o for o in answer.options if o.outcome and o.to_dict()["weights"] == "16 bits")
    launch = sixteen.to_dict()["launch"]

    assert 0.95 == launch["--gpu-memory-utilization"]["value"]
    assert sixteen.outcome is not None
    assert 10 == sixteen.outcome.sequences
    assert kvplan.fit(
        "qwen3-8b", gpu="rtx-4090", context="8k", max_model_len=8192, kv_cache_dtype="fp8",
        offline=True,
    ).sequences < 10  # fmt: skip


def test_without_a_price_fewer_cards_are_better() -> None:
    """What no price ranks is in order of cards, and the losers say that they take more."""
    answer = kvplan.advise("qwen3-32b", users=20, context="16k", gpu="h100-sxm-80gb",
                           currency="INR", offline=True)  # fmt: skip
    cards = [option.outcome.gpus for option in answer.options if option.outcome]

    assert cards == sorted(cards)
    assert 1 == cards[0]
    assert "meets the goals with more cards" == answer.options[1].why_not
