"""What is written and printed: values for CSV, tables for Markdown, nothing that moves a cursor."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvplan.cli import run
from kvplan.cli.table import plain

FIT = ["fit", "llama-3.1-8b", "--engine", "none", "--gpu", "h100-sxm-80gb", "--allowance", "8GiB"]


def test_csv_of_sizes(tmp_path: Path) -> None:
    """A row a model and length, plain numbers."""
    file = tmp_path / "out.csv"
    run(["size", "gpt2", "llama-3.1-8b", "--kv-dtype", "q8_0", "-o", str(file)])
    rows = list(csv.DictReader(file.read_text().splitlines()))

    assert ["1024", "4096", "32768", "131072"] == [row["tokens"] for row in rows]
    assert 69_632 * 32_768 == int(rows[2]["bytes"])
    assert int(rows[2]["bytes"]) == int(rows[2]["raw_bytes"]) + int(rows[2]["scale_bytes"])


def test_csv_of_a_fit(tmp_path: Path) -> None:
    """A row a value, under its path."""
    file = tmp_path / "out.csv"
    run([*FIT, "-o", str(file)])
    values = dict(csv.reader(file.read_text().splitlines()))

    assert "14" == values["capacity.sequences"]
    assert "16060522496" == values["ledger.0.bytes"]


def test_markdown_tables_stand_apart(tmp_path: Path) -> None:
    """An empty line before each, or they run together."""
    file = tmp_path / "out.md"
    run([*FIT, "-o", str(file)])
    lines = file.read_text().splitlines()
    heads = [place - 1 for place, line in enumerate(lines) if line.startswith("| ---")]

    assert 3 <= len(heads)
    assert {""} == {lines[place - 1] for place in heads}


def test_lengths_beyond_a_model_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Several models at usual lengths: each as far as it goes, and no maximum is no 0."""
    run(["size", "gpt2", "mamba-2.8b", "llama-3.1-8b"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]

    assert ["4,096", "–", "22.5", "MiB", "512", "MiB"] in lines
    assert ["23,592,960", "B", "–"] in [line[-3:] for line in lines]


def test_explain_names_what_was_set(capsys: pytest.CaptureFixture[str]) -> None:
    """Also under the type's own name of a key."""
    run(["size", "gpt2", "--set", "num_attention_heads=16", "--explain"])
    printed = capsys.readouterr().out

    assert "n_head = 16 (--set)" in printed
    assert "n_layer = 12 (config)" in printed
    assert "124,439,808 parameters × 2 bytes (bfloat16) = 248,879,616 B" in printed


def test_control_characters_reach_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A config may name anything."""
    file = tmp_path / "x.json"
    evil = {"model_type": "llama", "architectures": ["\x1b[31mEvil\x07\u202e"]}
    file.write_text(json.dumps(evil))
    run(["size", str(file), "--explain"])
    run(["size", str(tmp_path / "\x1b[2Jnone.json")])
    printed = "".join(capsys.readouterr())

    assert "Evil" in printed
    assert {"\n"} == {c for c in printed if not c.isprintable()}


def test_plain_keeps_what_can_be_read() -> None:
    """Letters of any script, and line ends."""
    assert "größe × 2\n–" == plain("größe × 2\n–")


def test_a_suggestion_stands_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Two parsers make one each."""
    run(["gpu"])

    assert 1 == capsys.readouterr().err.count("Did you mean")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_behind_the_output_is_no_fault_of_kvplan() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kvplan", "size", "llama-3.1-8b", "--offline"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip

    assert 3 == done.returncode
    assert "kvplan: The answer cannot be written: No space left on device.\n" == done.stderr


def test_a_reader_that_has_gone_is_no_answer_of_no() -> None:
    """``kvplan … | head -1``: the exit status stays that of an answer."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "kvplan", "size", "llama-3.1-8b", "--offline"],
        stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    os.close(writing)

    assert (0, "") == (done.returncode, done.stderr)
