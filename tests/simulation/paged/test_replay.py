"""The reference scheduler decides as vLLM 0.32.0's own does, in every scenario."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadFile, BadValue
from kvplan.simulation.replay import read_scenarios, replay
from tests.simulation.paged.scenarios import scenarios


@pytest.mark.parametrize("name", scenarios())
def test_every_decision_is_equal(name: str) -> None:
    """Hits, steps and preemptions of every request; tokens, requests and free blocks of each step.

    The records hold the steps of a scenario's beginning, up to 400.
    """
    scenario = scenarios()[name]
    found = replay(scenario)
    steps = [tuple(row[1:]) for row in scenario["steps"]]

    assert scenario["results"] == list(found.results)
    assert scenario["total_steps"] == len(found.steps)
    assert steps == list(found.steps[: len(steps)])


def scenario(**changes: Any) -> dict[str, Any]:
    settings = {"num_blocks": 20, "block_size": 16, "max_num_seqs": 4,
                "max_num_batched_tokens": 64, "max_model_len": 256}  # fmt: skip
    request = {"arrival_step": 0, "prompt": [["a", 0, 100]], "output_tokens": 5}
    row = {"id": "own", "settings": settings, "requests": [request]}
    return row | changes


def test_the_answer_is_the_contract_s() -> None:
    """Two chunks of a prompt of 100, then a token a step."""
    row = {"hit": 0, "admitted_step": 1, "first_token_step": 2, "finished_step": 6,
           "preemptions": 0}  # fmt: skip

    assert {"id": "own", "results": [row], "total_steps": 6} == replay(scenario()).to_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {}}, "it has no 'block_size'"),
        ({"settings": scenario()["settings"] | {"num_blocks": 10**12}}, "more than 16,777,216"),
        ({"requests": [{"arrival_step": 0, "prompt": "a", "output_tokens": 5}]}, "cannot be read"),
        ({"requests": [{"arrival_step": 0, "prompt": [["a", 0, -4]], "output_tokens": 5}]},
         "request 0 asks for"),
        ({"requests": [{"arrival_step": 0, "prompt": [["a", 0, 1e300]], "output_tokens": 5}]},
         "request 0 asks for"),
        ({"requests": [{"arrival_step": 0, "prompt": [["a", 0, 400]], "output_tokens": 5}]},
         "holds 26 blocks; the pool has 19"),
    ],
)  # fmt: skip
def test_what_is_no_scenario_is_refused(changes: dict[str, Any], message: str) -> None:
    """With a sentence that names it."""
    with pytest.raises(BadValue, match=message):
        replay(scenario(**changes))


def test_requests_are_sent_when_they_arrive_in_whatever_order_they_stand() -> None:
    """The results keep the order of the file."""
    rows = [
        {"arrival_step": at, "prompt": [[stream, 0, 20]], "output_tokens": 2}
        for at, stream in ((5, "a"), (0, "b"))
    ]
    results = replay(scenario(requests=rows)).to_dict()["results"]

    assert [6, 1] == [one["admitted_step"] for one in results]


@pytest.mark.parametrize("line", ["{", "[1]", "7", "[" * 100_000])
def test_a_line_that_is_no_object_is_refused(line: str, tmp_path: Any) -> None:
    """With its number."""
    path = tmp_path / "scenarios.jsonl"
    path.write_text("\n" + line)

    with pytest.raises(BadFile, match="Line 2 "):
        list(read_scenarios(path))
