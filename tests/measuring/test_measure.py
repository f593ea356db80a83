"""A whole measurement: its figures are those that the server counted itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kvplan
from kvplan.core.errors import BadQuestion
from kvplan.measuring.compare import compare
from kvplan.measuring.folder import read_answer, write
from kvplan.measuring.summary import Run
from tests.measuring.caching_server import BLOCK, Caching, caching

QUICK: dict[str, Any] = {"prompt": 48, "output": 4, "concurrency": "2", "requests": 6}


def measure(server: Caching, **asked: Any) -> kvplan.MeasureAnswer:
    with caching(server) as made:
        return kvplan.measure(made.address, **{**QUICK, **asked})


def runs_of(answer: kvplan.MeasureAnswer) -> dict[str, Run]:
    """By the words that tell them apart."""
    return {
        f"{run.prefix}{'' if run.reuse else ' off'}{' pressure' if run.pressure else ''}": run
        for run in answer.runs
    }


def test_cold_warm_and_unique_are_apart() -> None:
    """Nothing is reused of unique and cold prompts, all whole blocks of warm ones."""
    server = Caching()
    runs = runs_of(measure(server))
    kept = 36 // BLOCK * BLOCK

    assert ["unique", "cold", "warm", "warm off"] == list(runs)
    assert [0, 0, 6 * kept, 0] == [run.cached_tokens for run in runs.values()]
    assert [6, 2, 6, 6] == [run.requests for run in runs.values()]
    assert [48 * run.requests for run in runs.values()] == [
        run.prompt_tokens for run in runs.values()
    ]


@pytest.mark.parametrize("says_usage", [True, False])
def test_reused_tokens_are_those_that_the_server_counted(says_usage: bool) -> None:
    """By usage and by its counters, which stand in where replies are silent."""
    server = Caching(says_usage=says_usage)
    before = server.hits
    answer = measure(server)
    counted = [run.server_cached_tokens for run in answer.runs]

    assert server.hits - before == sum(count or 0 for count in counted)
    assert [run.cached_tokens for run in answer.runs] == counted
    assert {"usage" if says_usage else "counter"} == {run.cached_by for run in answer.runs}


def test_more_prefixes_than_the_cache_holds_are_lost() -> None:
    """Under pressure every prefix is gone when it is sent again, and that is counted."""
    runs = runs_of(measure(Caching(capacity=4 * 52 // BLOCK), pressure=True, concurrency="1"))
    again = runs["warm pressure"]

    assert 6 == again.distinct_prefixes == again.requests == again.missed_requests
    assert again.known_tokens == 6 * 36 == again.lost_tokens
    assert 0 == again.cached_tokens
    assert 0 == runs["warm"].lost_tokens


def test_counters_are_of_their_phase() -> None:
    """What a counter gained between the beginning and the end of a phase is the phase's."""
    answer = measure(Caching(), prefix="off")

    assert [6] == [run.preemptions for run in answer.runs]
    assert [0.5] == [run.kv_usage_peak for run in answer.runs]


def test_failures_are_counted_by_kind_and_the_rest_is_kept() -> None:
    """Every third request fails: no figure of the others is lost."""
    run = measure(Caching(fails=lambda n: n > 2 and n % 3 == 0), prefix="off", requests=30).runs[0]

    assert (30, 10, {"http_503": 10}) == (run.requests, run.failed, run.failures)
    assert (20 * 48, 20 * 4) == (run.prompt_tokens, run.output_tokens)


def test_bundled_chunks_are_told_apart_from_tokens() -> None:
    """Four tokens a chunk, 40 ms apart: 10 ms a token."""
    run = measure(
        Caching(per_chunk=4, step_s=0.04), prefix="off", output=16, requests=4, concurrency="1"
    ).runs[0]

    assert 4 == run.tokens_per_chunk
    assert 0.01 == pytest.approx(run.itl_s["p50"], rel=0.4)


def test_an_open_loop_sends_at_its_rate() -> None:
    """Requests go out when they are due, however many are open."""
    run = measure(
        Caching(step_s=0.05), rate="40", concurrency=None, prefix="off", requests=40, output=8
    ).runs[0]

    assert (None, 40.0, 0) == (run.concurrency, run.rate, run.failed)
    assert run.duration_s < 40 / 40 * 2.5
    assert (run.late_s["p50"] or 0.0) < 0.05


def test_reuse_is_switched_off_by_a_salt() -> None:
    """The cache_salt of vLLM is another for every request that must find nothing."""
    server = Caching()
    measure(server, prefix="both")
    salts = [body["cache_salt"] for body in server.bodies if "cache_salt" in body]

    assert 6 == len(salts) == len(set(salts))


def test_a_templates_tokens_are_counted_in() -> None:
    """A chat adds seven tokens: prompts are shorter by them, so that the whole is exact."""
    server = Caching(template=7)
    runs = runs_of(measure(server, chat=True))

    assert all(48 * run.requests == run.prompt_tokens for run in runs.values())
    assert 41 == len(server.bodies[-1]["messages"][0]["content"].split())
    assert 6 * 36 == runs["warm"].cached_tokens


def test_a_server_that_refuses_keys_is_asked_without_them() -> None:
    """First without those of an engine, then without those of streams' options."""
    server = Caching(refuses=("ignore_eos", "stream_options"))
    run = measure(server, prefix="off").runs[0]

    assert (6, 0) == (run.requests, run.failed)
    assert {"model", "prompt", "max_tokens", "temperature", "stream"} == set(server.bodies[-1])


def test_a_notebooks_loop_is_no_obstacle() -> None:
    """Where a loop already runs, the measurement has one of its own."""

    async def cell() -> kvplan.MeasureAnswer:
        return measure(Caching(), prefix="off")

    assert 0 == asyncio.run(cell()).runs[0].failed


TRACE = "\n".join(
    json.dumps(row)
    for row in (
        {"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]},
        {"timestamp": 50, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 3]},
        {"timestamp": 100, "input_length": 8, "output_length": 2, "hash_ids": [9]},
        {"timestamp": 100, "input_length": 5000, "output_length": 2, "hash_ids": [*range(10)]},
    )
)


def test_a_trace_is_sent_as_it_was_recorded(tmp_path: Path) -> None:
    """Lengths, arrivals, shared beginnings; what the server cannot hold is left out."""
    path = tmp_path / "trace.jsonl"
    path.write_text(TRACE)
    run = measure(Caching(), workload=path, concurrency=None).runs[0]

    assert ("trace", 3, 0) == (run.prefix, run.requests, run.failed)
    assert (600 + 1100 + 8, 3 + 5 + 2) == (run.prompt_tokens, run.output_tokens)
    assert 600 == run.cached_tokens
    assert run.duration_s >= 0.1


def test_a_folder_holds_everything(tmp_path: Path) -> None:
    """The answer, a row a request, a row a chunk, the server's figures; and no key."""
    answer = measure(Caching(), prefix="off")
    write(answer, tmp_path / "run")
    requests = pq.read_table(tmp_path / "run" / "requests.parquet").to_pylist()
    chunks = pq.read_table(tmp_path / "run" / "chunks.parquet").to_pylist()
    server = pq.read_table(tmp_path / "run" / "server.parquet").to_pylist()

    assert read_answer(tmp_path / "run") == json.loads(json.dumps(answer.to_dict()))
    assert [(48, 4, None)] * 6 == [
        (row["prompt_tokens"], row["output_tokens"], row["failure"]) for row in requests
    ]
    assert 6 * 4 == sum(row["tokens"] for row in chunks)
    assert "prefix_hit_tokens" in {row["figure"] for row in server}


def test_a_key_goes_to_the_server_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the environment is in no file and in no answer."""
    monkeypatch.setenv("KVPLAN_API_KEY", "sk-very-secret")
    answer = measure(Caching(), prefix="off")
    write(answer, tmp_path)

    assert "very-secret" not in json.dumps(answer.to_dict())
    assert not [path for path in tmp_path.iterdir() if b"very-secret" in path.read_bytes()]


def test_two_measurements_are_compared(tmp_path: Path) -> None:
    """Runs of the same conditions meet; a server that is slower is told as worse."""
    for name, step_s in (("fast", 0.01), ("slow", 0.05)):
        write(measure(Caching(step_s=step_s), prefix="off"), tmp_path / name)
    rows = {row.name: row for row in compare(tmp_path / "fast", tmp_path / "slow").rows}

    assert "worse" == rows["itl_s"].verdict == rows["output_tokens_per_s"].verdict
    assert 2 < (rows["itl_s"].ratio or 0)


@pytest.mark.parametrize("runs", [None, 7, "no", [1], [[]], {}])
def test_a_folder_of_something_else(runs: object, tmp_path: Path) -> None:
    """Runs that are none of ours are refused by name, or have nothing in common."""
    (tmp_path / "answer.json").write_text(json.dumps({"verb": "measure", "runs": runs}))

    with pytest.raises(BadQuestion, match=r"is no answer of kvplan measure|no run in common"):
        compare(tmp_path, tmp_path)


def test_ctrl_c_keeps_what_was_measured() -> None:
    """The phase that runs ends, its requests are recorded, and there is an answer."""

    def interrupts(number: int) -> bool:
        if number == 12:
            os.kill(os.getpid(), signal.SIGINT)
        return False

    answer = measure(Caching(step_s=0.02, fails=interrupts), prefix="off", requests=1000)

    assert not answer.experiment.is_whole
    assert answer.runs[0].requests - answer.runs[0].failed > 5
    assert {"interrupted"} == set(answer.failures)
    assert "Ctrl-C" in answer.warnings[0]


def test_the_time_for_all_is_bounded() -> None:
    """After --max-time no new request goes out; those before are the answer."""
    answer = measure(Caching(step_s=0.05), prefix="off", requests=1000, max_time=0.7)

    assert not answer.experiment.is_whole
    assert 2 < answer.runs[0].requests < 50
    assert not answer.failures
