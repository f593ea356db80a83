"""SGLang's rules against SGLang's own scheduler, step by step."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvplan.simulation.servers.base import Batch
from kvplan.simulation.servers.sglang import SglangServer, SglangSettings
from kvplan.simulation.traffic import Traffic
from tests.simulation.servers.cases import run, traffic

FOLDER = Path(__file__).parents[2] / "reference" / "sglang_oracle"
FILES = {"fcfs": "scheduler.json.gz", "lpm": "scheduler_lpm.json.gz"}
CASES = [("fcfs", index) for index in range(132)] + [("lpm", index) for index in range(44)]


@cache
def reference(policy: str) -> dict[str, Any]:
    with gzip.open(FOLDER / FILES[policy]) as file:
        found: dict[str, Any] = json.load(file)
    return found


@cache
def asked(policy: str, index: int) -> Traffic:
    row = reference(policy)["traffics"][index]
    rows = [(at, prompt, output) for at, prompt, output, _ in row["requests"]]
    return traffic(rows, [ids for *_, ids in row["requests"]], row["block"])


def server(said: dict[str, Any], policy: str) -> SglangServer:
    settings = SglangSettings(
        max_running=said["max_running"],
        chunk_tokens=said["chunk"],
        prefill_tokens=said["prefill"],
        conservativeness=said["cons"],
        mixed_chunk=said["mixed"],
        policy=policy,
    )
    return SglangServer(
        tokens=said["tokens"], page=said["page"], reuse=said["radix"], settings=settings
    )


@pytest.mark.parametrize(("policy", "index"), CASES)
def test_every_step_is_its_own(policy: str, index: int) -> None:
    """The same requests decode and are prefilled in each step, and the same becomes of each."""
    case = reference(policy)["cases"][index]
    steps: list[list[int]] = []

    def seconds(batch: Batch) -> float:
        prompts = sum(chunk.length for chunk in batch.chunks)
        steps.append([sum(batch.contexts), len(batch.contexts), prompts, len(batch.chunks)])
        return 1.0

    found = run(asked(policy, case["traffic"]), server(case["settings"], policy), step_s=seconds)

    assert case["steps"] == steps
    columns = zip(*case["results"], strict=True)
    admitted, first, finished, hits, retractions = (list(column) for column in columns)
    assert pytest.approx(admitted) == found.admitted_s.tolist()
    assert pytest.approx(first) == found.first_token_s.tolist()
    assert pytest.approx(finished) == found.finished_s.tolist()
    assert hits == found.hit_tokens.tolist()
    assert retractions == found.preemptions.tolist()


def test_the_reference_has_what_it_is_for() -> None:
    """Mixed steps and retractions are among it, and no case is left out."""
    cases = [case for policy in FILES for case in reference(policy)["cases"]]
    mixed = [case for case in cases if any(step[1] and step[3] for step in case["steps"])]
    retracted = [case for case in cases if any(row[4] for row in case["results"])]

    assert len(cases) == len(CASES)
    assert len(mixed) == 80
    assert len(retracted) > 20
