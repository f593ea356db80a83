"""Every format is told from its beginning, and its requests are the trace's."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

from kvplan.simulation.traces import read_traffic
from tests.simulation.traces.files import CONVERSATION, TRACES

# requests, mean prompt, mean output, ids, block, last arrival. Mooncake's and Azure's from the
# files' own documentation, the sessions and ServeGen's counted here.
WHOLE = {
    "mooncake_conversation.jsonl.gz": (12031, 12035, 343, 288500, 512, 3537),
    "mooncake_synthetic.full.jsonl.gz": (3993, 15325, 149, 121877, 512, 1022),
    "azure2023_conv.csv.gz": (19366, 1155, 211, 0, 16, 3502),
    "azure2023_code.csv.gz": (8819, 2048, 28, 0, 16, 3436),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_trace(name: str) -> None:
    """Every row is a request."""
    traffic = read_traffic(TRACES / name)
    found = (
        len(traffic),
        round(traffic.prompt_tokens.mean()),
        round(traffic.output_tokens.mean()),
        len(traffic.hash_ids),
        traffic.hash_block,
        round(traffic.arrival_s[-1]),
    )

    assert WHOLE[name] == found
    assert (0, (), ()) == (traffic.num_skipped, traffic.skipped, traffic.notes)


def test_ids_are_as_in_the_file() -> None:
    """Row by row, against the file parsed another way."""
    traffic = read_traffic(CONVERSATION)
    starts = traffic.hash_starts
    with gzip.open(CONVERSATION) as lines:
        for i, row in enumerate(map(json.loads, lines)):
            assert row["hash_ids"] == traffic.hash_ids[starts[i] : starts[i + 1]].tolist()
            assert row["timestamp"] / 1000 == traffic.arrival_s[i]


def rows(*made: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in made)


def columns(traffic: Any) -> list[list[Any]]:
    return [
        getattr(traffic, name).tolist()
        for name in ("arrival_s", "prompt_tokens", "output_tokens", "after")
    ]


def test_azure_2024() -> None:
    """Dates with a zone."""
    text = (
        b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        b"2024-05-10 00:00:00.009930+00:00,2162,5\r\n"
        b"2024-05-10 00:00:01.009930+00:00,2399,6\r\n"
    )

    assert [[0.0, 1.0], [2162, 2399], [5, 6], [-1, -1]] == columns(read_traffic(text))


def test_burstgpt() -> None:
    """A request that was answered by nothing failed: it is counted, not taken."""
    text = (
        b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
        b"Log Type\n"
        b"5.0,1,2.5,ChatGPT,472,18,490,Conversation log\n"
        b"45.0,1,0.1,ChatGPT,1087,0,1087,Conversation log\n"
        b"118.0,2,9.5,GPT-4,417,276,693,API log\n"
    )
    traffic = read_traffic(text)

    assert [[0.0, 113.0], [472, 417], [18, 276], [-1, -1]] == columns(traffic)
    assert ("line 3: answered nothing",) == traffic.skipped


def test_bailian() -> None:
    """A turn waits for its parent where that is asked for."""
    made = rows(
        {"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 20,
         "output_length": 9, "type": "text", "turn": 1, "hash_ids": [1, 2]},
        {"chat_id": 2, "parent_chat_id": 1, "timestamp": 9.5, "input_length": 40,
         "output_length": 3, "type": "text", "turn": 2, "hash_ids": [1, 2, 3]},
    )  # fmt: skip

    assert [-1, -1] == read_traffic(made).after.tolist()
    waiting = read_traffic(made, recorded=False)
    assert ([-1, 0], [0.0, 8.0]) == (waiting.after.tolist(), waiting.think_s.tolist())
    assert 16 == waiting.hash_block


def test_agents() -> None:
    """Ids are a session's own, a sub-agent waits for what started it, the main line goes on."""
    made = rows(
        {"id": "a", "block": 64, "r": [
            [0.0, 640, 10, 2.0, 0.0, [[1, 10]]],
            {"sub": [[0.0, 128, 5, 1.0, 0.0, [[50, 2]]], [4.0, 192, 5, 1.0, 3.0, [[50, 3]]]],
             "t": 5.0},
            [30.0, 704, 10, None, 28.0, [[1, 10], [99, 1]]],
        ]},
        {"id": "b", "block": 64, "r": [[0.0, 64, 1, 1.0, 0.0, [[1, 1]]]]},
    )  # fmt: skip
    traffic = read_traffic(made)

    assert [
        [0.0, 0.0, 5.0, 9.0, 30.0],
        [640, 64, 128, 192, 704],
        [10, 1, 5, 5, 10],
        [-1, -1, 0, 2, 0],
    ] == columns(traffic)
    assert [0.0, 0.0, 3.0, 3.0, 28.0] == traffic.think_s.tolist()
    ids = np.split(traffic.hash_ids, traffic.hash_starts[1:-1])
    assert [*range(1, 11)] == ids[0].tolist()
    assert [101] == ids[1].tolist()
    assert [50, 51, 52] == ids[3].tolist()
    assert [-1] * 5 == read_traffic(made, recorded=True).after.tolist()


def test_a_sample_of_agents() -> None:
    """Whole sessions of a real trace: every request is taken, each after the one before."""
    traffic = read_traffic(TRACES / "kvcachetester_agentic.sample.rle.jsonl.gz")

    assert 0 == traffic.num_skipped
    assert 30 == (traffic.after < 0).sum()
    assert (traffic.after < np.arange(len(traffic))).all()
    assert (np.diff(traffic.arrival_s) >= 0).all()


def test_sharegpt() -> None:
    """A request for each answer, whose prompt begins with the turn before."""
    made = json.dumps([
        {"id": "x", "conversations": [
            {"from": "human", "value": "a" * 400}, {"from": "gpt", "value": "b" * 80},
            {"from": "human", "value": "c" * 40}, {"from": "gpt", "value": "d" * 8}]},
        {"id": "y", "conversations": [{"from": "gpt", "value": "no question"}]},
        {"id": "z", "conversations": [{"from": "human", "value": "q"}]},
    ], indent=2).encode()  # fmt: skip
    traffic = read_traffic(made, output=100)
    starts = traffic.hash_starts

    assert [20, 2, 100] == traffic.output_tokens.tolist()
    assert [-1, 0, -1] == traffic.after.tolist()
    first, second = traffic.hash_ids[: starts[1]], traffic.hash_ids[starts[1] : starts[2]]
    assert first.tolist() == second[: len(first)].tolist()
    assert "estimate" in traffic.notes[0]


def test_openai_messages() -> None:
    """Bodies of a batch file: the limit is the answer's length where no answer is there."""
    made = rows(
        {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions",
         "body": {"model": "m", "max_tokens": 7,
                  "messages": [{"role": "system", "content": "s" * 128},
                               {"role": "user", "content": [{"type": "text", "text": "hi"}]}]}},
    )  # fmt: skip
    traffic = read_traffic(made)

    assert ([7], [-1]) == (traffic.output_tokens.tolist(), traffic.after.tolist())


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("arrival=when:ms,prompt=in,output=out", [[0.0, 1.5], [10, 30], [20, 40], [-1, -1]]),
        ("prompt=out,output=in", [[0.0, 0.0], [20, 40], [10, 30], [-1, -1]]),
    ],
)
def test_named_columns(asked: str, expected: list[list[Any]]) -> None:
    """A column is what it is said to be."""
    text = b"when;in;out\n1000;10;20\n2500;30;40\n"

    assert expected == columns(read_traffic(text, columns=asked))


def test_servegen() -> None:
    """The fleet's rate and the percentiles' lengths, the same for the same seed."""
    path = TRACES / "servegen_compact.first_day.json"
    traffic = read_traffic(path, workload="reason/deepseek-r1", requests=20000, seed=1)
    again = read_traffic(path, workload="reason/deepseek-r1", requests=20000, seed=1)
    rates = json.loads(path.read_bytes())["reason/deepseek-r1"]["fleet_rate_rps"]
    counted = (traffic.arrival_s < 600).sum() / 600

    assert traffic.prompt_tokens.tolist() == again.prompt_tokens.tolist()
    assert rates[0] == pytest.approx(counted, rel=0.15)
    assert 20000 == len(traffic)


def test_rows_of_a_program() -> None:
    """Dictionaries from a generator, the first so many of an endless one."""

    def endless() -> Any:
        while True:
            yield {"timestamp": 0, "prompt_tokens": 100, "output_tokens": 10}

    assert 1000 == len(read_traffic(endless(), requests=1000))
