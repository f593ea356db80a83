"""``kvplan explain``: a log by name or piped, tables for people, JSON by its schema."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kvplan.cli import run

STARTED = """\
vLLM API server version 0.19.0
non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 8192}
Model loading took 14.99 GiB memory and 4.05 seconds
Available KV cache memory: 50.00 GiB
GPU KV cache size: 409,600 tokens
Maximum concurrency for 8,192 tokens per request: 50.00x
"""
SHORT = """\
ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV \
cache is needed, which is larger than the available KV cache memory (4.89 GiB). Based on the \
available memory, the estimated maximum model length is 40048. Try increasing it
"""


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "start.log"
    path.write_text(STARTED, encoding="utf-8")
    return str(path)


def test_json_follows_its_schema(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``--json`` prints the contract's object, of one log and of two."""
    text = files("kvplan").joinpath("data/schemas/explain.json").read_text(encoding="utf-8")

    for arguments in ([log], [log, log], [log, "--gpu", "h100"]):
        status = run(["explain", *arguments, "--json", "--offline"])
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        jsonschema.validate(answer, json.loads(text))
        assert (0, "explain") == (status, answer["verb"])


def test_tables(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A person sees the ledger beside the prediction, the figures, and what would give more."""
    status = run(["explain", log, "--gpu", "h100", "--explain"])
    printed = capsys.readouterr().out

    assert 0 == status
    for word in ("kv pool", "predicted", "within the prediction's error", "409,600", "line 4",
                 "--kv-cache-dtype fp8", "bytes_per_token = "):  # fmt: skip
        assert word in printed


def test_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that is piped in fails for a reason that is told with the length that fits."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SHORT.encode())))
    status = run(["explain", "-", "--model", "llama-3.1-8b", "--gpu", "rtx-4090"])
    printed = capsys.readouterr().out

    assert 0 == status
    assert "11.11 GiB short" in printed
    assert "--max-model-len 40032" in printed


def test_two_logs(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What changed stands first."""
    later = tmp_path / "later.log"
    later.write_text(STARTED.replace("50.00 GiB", "40.00 GiB"), encoding="utf-8")

    assert 0 == run(["explain", log, str(later)])
    assert "The pool went from 50.00 GiB to 40.00 GiB" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("ending", ["json", "md", "csv", "svg"])
def test_files(ending: str, log: str, tmp_path: Path) -> None:
    """The answer is written as its ending says."""
    path = tmp_path / f"out.{ending}"

    assert 0 == run(["explain", log, "-o", str(path)])
    assert path.read_text(encoding="utf-8")


REFUSED: list[tuple[bytes, list[str], int, str]] = [
    (b"nothing here\n", [], 2, "nothing that an engine prints"),
    (bytes(range(256)) * 9, [], 2, "binary"),
    (STARTED.encode(), ["--gpu", "h1000"], 2, "h1000"),
    (STARTED.encode(), ["--model", "no-such-model", "--gpu", "h100"], 2, "no-such-model"),
]


@pytest.mark.parametrize(("data", "arguments", "status", "said"), REFUSED)
def test_refusals(
    data: bytes,
    arguments: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What cannot be answered is a sentence, and its status says of what kind."""
    path = tmp_path / "a.log"
    path.write_bytes(data)

    assert status == run(["explain", str(path), *arguments])
    assert said in capsys.readouterr().err


def test_a_log_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file is a source that cannot be reached."""
    assert 3 == run(["explain", "absent.log"])
    assert "absent.log cannot be read" in capsys.readouterr().err
