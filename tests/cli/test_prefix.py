"""``kvplan prefix``: requests by name or piped, tables for people, JSON by its schema, files."""

from __future__ import annotations

import csv
import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kvplan.cli import run
from tests.simulation.traces.files import CONVERSATION

HANDBOOK = "".join(f"{i}. What is written here is not to be asked again.\n" for i in range(40))


@pytest.fixture
def requests(tmp_path: Path) -> str:
    path = tmp_path / "requests.jsonl"
    rows = [
        {"messages": [{"role": "system", "content": f"Now: 09:{i}\n{HANDBOOK}"},
                      {"role": "user", "content": f"Number {i}?"}]}
        for i in range(10, 15)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--pool-blocks", "10,1k"], ["--engine", "llama.cpp"], ["--api", "openai/gpt-4o"]],
)
def test_json_follows_its_schema(
    arguments: list[str], requests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--json`` prints the contract's object."""
    text = files("kvplan").joinpath("data/schemas/prefix.json").read_text(encoding="utf-8")
    status = run(["prefix", requests, *arguments, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)

    jsonschema.validate(answer, json.loads(text))
    assert (0, "prefix", 5) == (status, answer["verb"], answer["requests"])


def test_tables(requests: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A person sees where prompts part, in which message, and what the other order reuses."""
    status = run(["prefix", requests, "--pool-blocks", "100", "--explain"])
    printed = capsys.readouterr().out

    assert 0 == status
    for word in ("what differs moved behind", "Now: 09:1", "lost tokens", "optimum", "Reuse: vllm"):
        assert word in printed


def test_a_pipe(
    requests: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``-`` is standard input."""
    stream = io.TextIOWrapper(io.BytesIO(Path(requests).read_bytes()))
    monkeypatch.setattr("sys.stdin", stream)
    status = run(["prefix", "-", "--json"])

    assert (0, 5) == (status, json.loads(capsys.readouterr().out)["requests"])


def test_a_trace_through_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gzipped as it is; what was looked at to tell its format is not lost."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CONVERSATION.read_bytes())))
    status = run(["prefix", "-", "--engine", "none", "--first", "200", "--json"])
    answer = json.loads(capsys.readouterr().out)

    assert (0, 200, "standard input") == (status, answer["requests"], answer["source"])


def test_csv_has_a_row_a_request(requests: str, tmp_path: Path) -> None:
    """What each prompt shares with those before it, and what is reused of that."""
    file = tmp_path / "out.csv"
    run(["prefix", requests, "--engine", "sglang", "-o", str(file)])
    rows = list(csv.DictReader(file.read_text().splitlines()))

    assert ["0", "1", "2", "3", "4"] == [row["request"] for row in rows]
    assert all(int(row["reused_tokens"]) <= int(row["seen_tokens"]) for row in rows)
    assert int(rows[1]["seen_tokens"]) > 0


@pytest.mark.parametrize("pools", [[], ["--pool-blocks", "10,100,1000"]])
def test_a_plot(pools: list[str], requests: str, tmp_path: Path) -> None:
    """Of requests, or of pools where several were asked for."""
    file = tmp_path / "out.svg"
    status = run(["prefix", requests, *pools, "-o", str(file)])

    assert (0, "<svg") == (status, file.read_text()[:4])


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["no/such/file"], 3, "cannot be read"),
        (["{}", "--engine", "nothing"], 2, "nothing"),
        (["{}", "--block-size", "-3"], 2, "--block-size"),
        (["{}", "--pool", "4GiB"], 2, "--model"),
        (["{}", "--tokenizer", "no.json"], 2, "--tokenizer no.json is no file"),
        (["{}", "--tokenizer", "some/name", "--offline"], 2, "the hub is not asked offline"),
    ],
)
def test_wrong_questions(
    arguments: list[str],
    status: int,
    said: str,
    requests: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A sentence and an exit status."""
    found = run(["prefix", *(word.replace("{}", requests) for word in arguments)])

    assert status == found
    assert said in capsys.readouterr().err
