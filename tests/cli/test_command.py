"""The command's contract: exit status, JSON by schema, and errors as sentences."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from kvplan.cli import run
from kvplan.engines.names import ENGINES

ANSWERED = [
    ("size", ["size", "llama-3.1-8b"]),
    ("size", ["size", "llama-3.1-8b", "gemma-3-27b", "deepseek-v4-flash", "--context", "4k,32k"]),
    ("size", ["size", "qwen3-32b", "--prompt", "8000", "--output", "200"]),
    ("size", ["size", "qwen3-32b", "--requests", "20", "--shared-prefix", "12000"]),
    ("size", ["size", "qwen3-32b", "--kv-dtype", "q8_0", "--sequences", "3"]),
    ("size", ["size", "qwen3-32b", "--set", "num_key_value_heads=64"]),
    ("fit", ["fit", "llama-3.1-8b", "--gpu", "h100-sxm-80gb"]),
    ("fit", ["fit", "qwen3-32b", "--gpu", "h100-sxm-80gb", "--gpus", "2", "--price", "2.95"]),
    ("fit", ["fit", "llama-3.1-8b", "--engine", "none", "--gpu-memory", "80GiB"]),
    *(
        ("fit", ["fit", "llama-3.1-8b", "--gpu", "h100-sxm-80gb", "--engine", engine])
        for engine in ENGINES
    ),
    ("fit", ["fit", "--from", "vllm serve qwen3-32b -tp 2 --port 1", "--gpu", "h100-sxm-80gb"]),
    ("models", ["models", "qwen3"]),
    ("gpus", ["gpus", "h100"]),
    ("engines", ["engines"]),
]

# The question, the exit status, and words that the sentence has.
REFUSED = [
    (["size", "no-such-model"], 2, ["No model is named", "no-such-model"]),
    (["size", "qwen3-33b"], 2, ["qwen3-33b", "Did you mean"]),
    (["size", "./absent/config.json"], 3, ["absent/config.json"]),
    (["size", "llama-3.1-8b", "--context", "lots"], 2, ["lots", "32k"]),
    (["size", "llama-3.1-8b", "--context", ""], 2, ["--context"]),
    (["size", "llama-3.1-8b", "--context", "-5"], 2, ["-5"]),
    (["size", "llama-3.1-8b", "--kv-dtype", "int3"], 2, ["int3", "Known:", "q8_0"]),
    (["size", "llama-3.1-8b", "--set", "nonsense"], 2, ["key=value"]),
    (["size", "llama-3.1-8b", "--set", "num_hidden_layers=-1"], 2, ["num_hidden_layers", "-1"]),
    (["size", "llama-3.1-8b", "--set", "num_hidden_layers=NaN"], 2, ["num_hidden_layers"]),
    (["size", "llama-3.1-8b", "--sequences", "0"], 2, ["sequences"]),
    (["size", "llama-3.1-8b", "--output", "7"], 2, ["--prompt"]),
    (["size", "llama-3.1-8b", "--assume", "magic"], 2, ["magic", "full"]),
    (["size", "falcon-7b", "--kv-dtype", "q8_0", "--set", "num_attention_heads=73"], 2, ["q8_0"]),
    (["size", "llama-3.1-8b", "--nonsense"], 2, ["--nonsense", "--help"]),
    (["size", "llama-3.1-8b", "-o", "x.docx"], 2, ["x.docx", ".csv"]),
    (["size"], 2, ["MODEL"]),
    (["sise", "llama-3.1-8b"], 2, ["sise"]),
    (["fit", "llama-3.1-8b"], 2, ["--gpu"]),
    (["fit", "llama-3.1-8b", "--gpu", "h1000"], 2, ["h1000", "h100"]),
    (["fit", "llama-3.1-8b", "--gpu", "rtx 6000"], 2, ["rtx-6000-ada", "rtx-pro-6000"]),
    (["fit", "llama-3.1-8b", "--gpu", "m3-max"], 2, ["--gpu-memory"]),
    (
        ["fit", "llama-3.1-8b", "--engine", "none", "--gpu", "h100", "--gpus", "3"],
        2,
        ["32", "--gpus 2 or 4"],
    ),
    (["fit", "llama-3.1-8b", "--gpu", "h100", "--gpus", "0"], 2, ["--gpus 0"]),
    (["fit", "llama-3.1-8b", "--gpu", "h100", "--gpu-memory", "80"], 2, ["no unit", "GiB"]),
    (["fit", "llama-3.1-8b", "--gpu", "h100", "--bandwidth", "fast"], 2, ["fast"]),
    (["fit", "llama-3.1-8b", "--gpu", "h100", "--engine", "magic"], 2, ["magic", "Known:"]),
    (["fit", "llama-3.1-8b", "--gpu", "h100", "--allowance", "4GiB"], 2, ["--engine none"]),
    (["fit", "llama-3.1-8b", "--gpu", "h100", "--price", "nan"], 2, ["--price"]),
    (["fit", "llama-3.1-8b", "--gpu", "h100", "--concurrency", "0"], 2, ["--concurrency 0"]),
    (["fit", "--gpu", "h100"], 2, ["MODEL", "--from"]),
    (["fit", "--gpu", "h100", "--from", "vllm serve x --nope"], 2, ["--nope"]),
    (["fit", "--gpu", "h100", "--from", "vllm serve 'x"], 2, ["not closed"]),
    (["models", "zzzz"], 2, ["zzzz"]),
    (["gpus", "zzzz"], 2, ["zzzz"]),
]


def schema(name: str) -> dict[str, Any]:
    text = files("kvplan").joinpath(f"data/schemas/{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize(("verb", "arguments"), ANSWERED, ids=[" ".join(a) for _, a in ANSWERED])
def test_json_follows_its_schema(
    verb: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """``--json`` prints the contract's object and nothing else, and exits 0."""
    status = run([*arguments, "--json"])
    answer = json.loads(capsys.readouterr().out)

    jsonschema.validate(answer, schema(verb))
    assert (0, verb) == (status, answer["verb"])


@pytest.mark.parametrize(("verb", "arguments"), ANSWERED, ids=[" ".join(a) for _, a in ANSWERED])
def test_people_get_a_table(
    verb: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``--json`` the same question prints a table."""
    status = run(arguments)

    assert 0 == status
    assert "──" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "words"), REFUSED, ids=[" ".join(a) for a, _, _ in REFUSED]
)
def test_a_wrong_question_gets_a_sentence(
    arguments: list[str], status: int, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names what was asked, and the status says whose fault it is."""
    found = run(arguments)
    text = capsys.readouterr().err

    assert (status, []) == (found, [word for word in words if word not in text])
    assert "Traceback" not in text
    assert "fault of kvplan" not in text


@pytest.mark.parametrize(
    ("arguments", "status", "words"), REFUSED, ids=[" ".join(a) for a, _, _ in REFUSED]
)
def test_an_error_is_json_too(
    arguments: list[str], status: int, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``--json`` the error is on standard output, the sentence still on standard error."""
    run([*arguments, "--json"])
    shown = capsys.readouterr()
    answer = json.loads(shown.out)

    jsonschema.validate(answer, schema("error"))
    assert answer["error"]["message"] in shown.err


def test_what_does_not_fit_exits_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer no: the term that breaks the plan, its arithmetic, status 1."""
    status = run(["fit", "qwen3-32b", "--engine", "none", "--gpu", "rtx-4090", "--json"])
    answer = json.loads(capsys.readouterr().out)

    assert (1, False) == (status, answer["fits"])
    assert (
        "The weights take 61.02 GiB of a card's 23.99 GiB. The nearest that fits: --gpus 4."
        == answer["reason"]
    )


def test_a_round_number_of_gb_is_questioned(capsys: pytest.CaptureFixture[str]) -> None:
    """80 GB is 74.51 GiB, and no card reports it."""
    run(["fit", "llama-3.1-8b", "--gpu-memory", "80GB", "--json"])
    answer = json.loads(capsys.readouterr().out)

    assert any("80GB is 74.51 GiB" in text for text in answer["warnings"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """``kvplan --version`` names the version."""
    from kvplan import __version__

    assert 0 == run(["--version"])
    assert f"kvplan {__version__}" == capsys.readouterr().out.strip()


def test_the_package_runs_as_a_module(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m kvplan` is the command."""
    run(["--version"])
    command = [sys.executable, "-m", "kvplan", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == capsys.readouterr().out


def test_no_arguments_help(capsys: pytest.CaptureFixture[str]) -> None:
    """``kvplan`` alone says what it can do."""
    assert 0 == run([])
    assert "size" in capsys.readouterr().out
