"""``kvplan simulate`` as a function and as a command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.cli import run as command
from kvplan.core.errors import BadQuestion
from kvplan.planning.speed import estimate
from kvplan.simulation import needed
from kvplan.simulation.workload import Workload
from tests.simulation.traces.files import TRACES

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm-80gb",
    "rate": 20.0,
    "requests": 40,
    "prompt": "uniform:100-900",
    "output": 20,
    "time": "constant:10ms",
}


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        ("vllm", {}),
        ("sglang", {}),
        ("llama.cpp", {"ctx_size": 16384, "parallel": 8}),
        ("ollama", {}),
        ("tensorrt-llm", {}),
        ("transformers", {"context": 2048}),
        ("none", {"allowance": "8GiB", "context": 2048}),
    ],
)
def test_every_engine_serves_all(engine: str, flags: dict[str, Any]) -> None:
    """All requests end, and the same seed gives the same."""
    first, again = (kvplan.simulate(**ASKED, engine=engine, **flags).figures() for _ in range(2))

    assert 40 == first["finished"]
    del first["simulated_requests_per_s"], again["simulated_requests_per_s"]
    assert first == again


def test_the_plan_is_fits() -> None:
    """The pool's blocks are those that fit plans, the null block aside."""
    answer = kvplan.simulate(**ASKED)
    plan = kvplan.fit("llama-3.1-8b", gpu="h100-sxm-80gb").plan

    assert plan.pool.num_blocks == answer.runs[0].outcome.num_blocks + 1
    assert plan.pool.block_size == answer.to_dict()["pool"]["block_size"]


def test_a_constant_step_is_each_token() -> None:
    """Nothing waits: every token after the first takes a step of 10 ms.

    The first waits for the rest of a step, and where the next is decided already for that one too.
    """
    ahead = kvplan.simulate(**ASKED).figures()
    not_ahead = kvplan.simulate(**ASKED, no_async_scheduling=True).figures()

    assert pytest.approx(0.01) == ahead["tpot_s"]["p99"] == not_ahead["tpot_s"]["p99"]
    assert 0.01 <= not_ahead["ttft_s"]["p50"] <= 0.02 <= ahead["ttft_s"]["p50"] <= 0.03


def test_the_estimates_error_is_carried() -> None:
    """What the speed model says of itself stands in the answer; a constant has no error."""
    estimated = kvplan.simulate(**ASKED | {"time": "estimate"}).to_dict()["time"]
    bound = kvplan.simulate(**ASKED | {"time": "bound"}).to_dict()
    found = estimate(kvplan.fit("llama-3.1-8b", gpu="h100-sxm-80gb").plan)

    assert {"source": found.cost.source, "error": found.error} == estimated
    assert bound["time"] == {"source": "bound: bandwidth and dense peak", "error": None}


def test_a_small_pool_preempts_and_a_large_one_does_not() -> None:
    """2 GiB are 1,024 blocks of 16 tokens: 16 of 64 conversations of 1,000 tokens."""
    asked = ASKED | {"rate": None, "concurrency": 64, "requests": 128, "prompt": 500, "output": 500}
    small = kvplan.simulate(**asked, kv_pool="2GiB", max_model_len=4096).figures()
    large = kvplan.simulate(**asked, kv_pool="40GiB", max_model_len=4096).figures()

    assert small["preemptions"] > 0 == large["preemptions"]
    assert small["recomputed_tokens"] > 0 == large["recomputed_tokens"]
    assert 0.97 < small["kv_usage"]["peak"] <= 1.0
    assert 64 == large["running"]["max"]
    assert small["duration_s"] > large["duration_s"]


def test_paging_holds_more_than_runs_of_the_longest_length() -> None:
    """The same pool: what is reserved and never used is what paging gives back."""
    asked = ASKED | {"rate": None, "concurrency": 64, "requests": 128, "context": 8192}
    paged = kvplan.simulate(**asked, kv_pool="4GiB", max_model_len=8192).figures()
    whole = kvplan.simulate(**asked, kv_pool="4GiB", max_model_len=8192, cache="contiguous")
    extras = whole.to_dict()["extras"]

    assert 4 == whole.figures()["running"]["max"]  # 4 GiB of 1 GiB for 8,192 tokens
    assert 32 < paged["running"]["max"]
    assert extras["reserved_never_used_share"] > 0.9
    assert extras["used_share"] < 0.1


@pytest.mark.parametrize("router", ["round-robin", "least-loaded", "prefix-aware"])
def test_copies_share_the_load(router: str) -> None:
    """Twice the blocks, and nobody waits as long as with one."""
    asked = ASKED | {"rate": 200.0, "requests": 200, "max_num_seqs": 16}
    one = kvplan.simulate(**asked).figures()
    two = kvplan.simulate(**asked, replicas=2, router=router)

    assert two.figures()["queue_s"]["p95"] < one["queue_s"]["p95"]
    assert two.to_dict()["copies"]["count"] == 2
    assert 32 == two.figures()["running"]["max"]


def test_what_routing_costs_in_hits() -> None:
    """Chats of four turns on four copies: in turn three of four turns find nothing of theirs."""
    asked = ASKED | {"turns": 4, "rate": 2.0, "requests": 160, "prompt": 200, "think": 1.0}
    rates = {
        router: kvplan.simulate(**asked, replicas=4, router=router).figures()["prefix"]["hit_rate"]
        for router in ("round-robin", "prefix-aware")
    }
    alone = kvplan.simulate(**asked).figures()["prefix"]["hit_rate"]

    assert rates["round-robin"] < 0.5 * alone
    assert pytest.approx(alone, abs=0.02) == rates["prefix-aware"]


def test_prompts_apart_keep_tokens_even() -> None:
    """A long prompt does not stop those that decode elsewhere; its cache comes over a link."""
    asked = ASKED | {"prompt": 8000, "output": 200, "rate": 4.0, "time": "bound"}
    together = kvplan.simulate(**asked, replicas=2).figures()
    apart = kvplan.simulate(**asked, prefill_replicas=1, link="50GB/s").figures()
    slow = kvplan.simulate(**asked, prefill_replicas=1, link="1GB/s").figures()

    assert apart["tpot_s"]["p99"] < together["tpot_s"]["p99"]
    assert slow["e2e_s"]["mean"] - apart["e2e_s"]["mean"] == pytest.approx(
        8000 * 131072 * (1e-9 - 0.02e-9), rel=0.2
    )


def test_seeds_give_confidence() -> None:
    """Three runs, their means, and an interval for what varies."""
    body = kvplan.simulate(**ASKED, seeds=3, seed=5).to_dict()
    low, high = body["confidence"]["intervals"]["ttft_s.mean"]

    assert [5, 6, 7] == body["confidence"]["seeds"]
    assert low < body["ttft_s"]["mean"] < high
    assert 40 == body["requests"]


def test_a_summary_is_drawn_anew_for_every_seed() -> None:
    """ServeGen's rates and lengths are drawn, so that there is a spread; a trace has none."""
    summary = TRACES / "servegen_compact.first_day.json"
    asked = {key: ASKED[key] for key in ("model", "gpu", "time", "requests")}
    body = kvplan.simulate(**asked, trace=summary, seeds=2).to_dict()
    low, high = body["confidence"]["intervals"]["duration_s"]

    assert low < high
    with pytest.raises(BadQuestion, match="the same for every seed"):
        kvplan.simulate(**asked, trace=TRACES / "azure2023_code.csv.gz", seeds=2)


@pytest.mark.parametrize(
    "several", [["--seeds", "2"], ["--sweep", "rate=1:2"], ["--find-rate", "--ttft", "1s"]]
)
def test_standard_input_is_read_for_one_run(
    several: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The second would find it empty."""
    asked = ["simulate", "llama-3.1-8b", "--gpu", "h100-sxm-80gb", "--trace", "-"]

    assert 2 == command([*asked, *several])
    assert "Standard input is read once" in capsys.readouterr().err


def test_a_tokenizer_is_not_fetched_offline(tmp_path: Path) -> None:
    """Of a trace of text, whose tokenizer is named."""
    trace = tmp_path / "chats.jsonl"
    trace.write_text('{"messages": [{"role": "user", "content": "Good day"}]}\n')
    asked = {key: ASKED[key] for key in ("model", "gpu", "time")}

    with pytest.raises(BadQuestion, match="the hub is not asked offline"):
        kvplan.simulate(**asked, trace=str(trace), tokenizer="gpt2", offline=True)


def test_a_trace_is_stretched_to_a_rate_or_sent_in_a_loop() -> None:
    """Rows as dictionaries: 11 requests in 10 s are 1 a second; at 5 a second they take 2 s."""
    rows = [
        {"timestamp": 1000 * n, "input_length": 50, "output_length": 2, "hash_ids": []}
        for n in range(11)
    ]
    asked = {key: ASKED[key] for key in ("model", "gpu", "time")}
    plain, faster = (kvplan.simulate(**asked, trace=rows, rate=rate) for rate in (None, 5.0))
    looped = kvplan.simulate(**asked, trace=rows, concurrency=1).figures()

    assert [10.0, 2.0] == [run.runs[0].traffic.arrival_s[-1] for run in (plain, faster)]
    assert pytest.approx(11 * 0.02) == looped["duration_s"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rate": None}, "Neither --trace, --rate nor --concurrency"),
        ({"router": "random"}, "No router is named 'random'"),
        ({"policy": "longest"}, "vllm has no policy 'longest'"),
        ({"time": "soon"}, "is no file that can be read"),
        ({"time": "constant:0"}, "not a time"),
        ({"seeds": 0}, "--seeds"),
        ({"seed": -1}, "--seed -1 is not a whole number from 0"),
        ({"requests": 0}, "--requests 0"),
        ({"reserve": "power"}, "--reserve power is of a cache without pages"),
        ({"link": "5GB/s"}, "--link is between copies"),
        ({"columns": "timestamp=t"}, "--columns says how a trace is read"),
        ({"workload": "a"}, "--workload says how a trace is read"),
        ({"replicas": 0}, "--replicas"),
        ({"cache": "heap"}, "There is no 'heap'"),
        ({"preemption": "swap", "engine": "sglang"}, "sglang does not swap"),
        ({"prefill_replicas": 1, "engine": "sglang"}, "of vllm, not of sglang"),
        ({"gpu": "rtx-4090", "max_model_len": 131072}, r"max seq len \(131072\)"),
    ],
)
def test_a_wrong_question_is_a_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(BadQuestion, match=said):
        kvplan.simulate(**ASKED | changed)


def test_a_prompt_that_never_fits_is_counted() -> None:
    """Longer than a sequence may be: refused, and the rest goes on."""
    found = kvplan.simulate(**ASKED | {"prompt": "uniform:100-3000"}, max_model_len=2048).figures()

    assert 0 < found["rejected"] < 40
    assert 40 == found["rejected"] + found["finished"]


def test_what_a_trace_does_not_hear_is_told() -> None:
    """A page's form has both: the trace goes first, and says so."""
    rows = [{"timestamp": 0, "input_length": 50, "output_length": 2, "hash_ids": []}]
    asked = {key: ASKED[key] for key in ("model", "gpu", "time")}
    found = kvplan.simulate(**asked, trace=rows, prompt=2048, turns=3)

    assert 1 == found.figures()["finished"]
    assert found.warnings[-2:] == (
        "--prompt is of drawn traffic: the trace has its own.",
        "--turns is of drawn traffic: the trace has its own.",
    )


def test_where_all_are_refused_the_answer_is_no() -> None:
    """It says how long they are; the exit status is 1."""
    found = kvplan.simulate(**ASKED | {"prompt": 4000}, max_model_len=2048)

    assert not found.met
    assert "40 of 40 requests are refused" in found.warnings[-1]


def test_the_workload_of_a_seed_is_the_same() -> None:
    work = Workload(rate=3.0, requests=20, prompt="lognormal:500,0.5")
    one, other, again = (work.traffic(seed) for seed in (1, 2, 1))

    assert one.prompt_tokens.tolist() == again.prompt_tokens.tolist()
    assert one.prompt_tokens.tolist() != other.prompt_tokens.tolist()


COMMAND = ["simulate", "llama-3.1-8b", "--gpu", "h100-sxm-80gb", "--rate", "20", "--requests", "30",
           "--prompt", "uniform:100-900", "--output", "20", "--time", "constant:10ms"]  # fmt: skip


def test_the_command_and_the_function_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """The same figures; an engine's own flag is taken in its spelling."""
    assert 0 == command([*COMMAND, "--max-num-seqs", "4", "--json"])
    said = json.loads(capsys.readouterr().out)
    answer = kvplan.simulate(**ASKED | {"requests": 30}, max_num_seqs=4).to_dict()
    for body in (said, answer):
        del body["simulated_requests_per_s"]

    assert answer == said
    assert 4 == said["running"]["max"]


def test_people_see_latency_and_what_the_cache_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == command([*COMMAND, "--seeds", "2", "--explain"])
    said = capsys.readouterr().out

    for words in ("30 of 30 requests", "first token", "preemptions", "constant: 10 ms a step",
                  "Between these the mean lies"):  # fmt: skip
        assert words in said


@pytest.mark.parametrize("ending", [".json", ".csv", ".md", ".png", ".svg", ".html"])
def test_an_answer_is_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"run{ending}"

    assert 0 == command([*COMMAND, "-o", str(path)])
    assert path.stat().st_size > 200


def test_requests_are_written_as_parquet(tmp_path: Path) -> None:
    """A row a request of each seed."""
    import pyarrow.parquet as pq

    path = tmp_path / "run.parquet"
    assert 0 == command([*COMMAND, "--seeds", "2", "-o", str(path)])
    table = pq.read_table(path)

    assert 60 == table.num_rows
    assert {"arrived_s", "first_token_s", "prompt_tokens", "seed"} <= set(table.column_names)


def test_a_trace_for_a_viewer(tmp_path: Path) -> None:
    """Every slice that begins ends, in order; counters have numbers; the engine is named."""
    path = tmp_path / "run.trace.json"
    assert 0 == command([*COMMAND, "-o", str(path)])
    events = json.loads(path.read_text())["traceEvents"]
    open_slices: dict[tuple[int, str], float] = {}
    phases = []
    for event in events:
        if event["ph"] == "b":
            open_slices[event["id"], event["name"]] = event["ts"]
        elif event["ph"] == "e":
            assert event["ts"] >= open_slices.pop((event["id"], event["name"]))
            phases.append(event["name"])
    counters = {event["name"] for event in events if event["ph"] == "C"}

    assert {} == open_slices
    assert dict.fromkeys(("queue", "first token", "answer"), 30) == {
        name: phases.count(name) for name in set(phases)
    }
    assert {"blocks in use", "running", "waiting", "prefix hit rate", "preemptions"} == counters
    assert "engine: vllm" in [e["args"]["name"] for e in events if e["ph"] == "M"]


def test_scenarios_are_stepped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No clock, no model: the contract's rows."""
    path = tmp_path / "scenarios.jsonl"
    path.write_text(json.dumps({
        "id": "one",
        "settings": {"num_blocks": 20, "block_size": 4, "max_num_seqs": 4,
                     "max_num_batched_tokens": 16, "max_model_len": 64},
        "requests": [{"arrival_step": 0, "prompt": [["a", 0, 10]], "output_tokens": 3}],
    }))  # fmt: skip
    assert 0 == command(["simulate", "--replay", str(path), "--json"])
    found = json.loads(capsys.readouterr().out)["scenarios"]

    assert [{
        "id": "one",
        "results": [{"hit": 0, "admitted_step": 1, "first_token_step": 1, "finished_step": 3,
                     "preemptions": 0}],
        "total_steps": 3,
    }] == found  # fmt: skip


def test_without_the_extra_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package imports without numpy; asking says what to install."""
    monkeypatch.setattr(needed, "find_spec", lambda name: None)

    with pytest.raises(BadQuestion, match=r"pip install 'kvplan\[simulate\]'"):
        kvplan.simulate(**ASKED)


def test_asking_for_help_needs_no_numpy() -> None:
    """What the command imports at its start has none of the heavy libraries in it."""
    words = "import sys, kvplan, kvplan.cli, kvplan.simulation.simulate; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)

    assert set() == {"numpy", "numba", "pyarrow", "joblib"} & set(done.stdout.split())
