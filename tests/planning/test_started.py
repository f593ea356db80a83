"""``fit --from``: the question that an engine's own command line asks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadFile, BadValue, KvplanError, SourceUnreachable

H100 = "h100-sxm-80gb"


def launch(answer: kvplan.FitAnswer) -> dict[str, Any]:
    """The flags that were given."""
    settings = answer.to_dict()["launch"]
    return {flag: row["value"] for flag, row in settings.items() if row["source"] == "flag"}


def test_a_line_is_the_same_question() -> None:
    """Flags by hand and the same in vLLM's own line."""
    line = kvplan.fit(from_="vllm serve Qwen/Qwen3-32B -tp 2 --max-model-len 16K", gpu=H100)
    asked = kvplan.fit(
        "Qwen/Qwen3-32B", gpu=H100, gpus=2, tensor_parallel_size=2, max_model_len=16384
    )

    assert asked.to_dict() == line.to_dict()


ENGINES = [
    ("vllm serve Qwen/Qwen3-32B -tp 2", "vllm", 2),
    ("vllm serve Qwen/Qwen3-32B -tp 2 -pp 2 -dp 2", "vllm", 8),
    ("vllm serve Qwen/Qwen3-32B", "vllm", 1),
    ("python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 4", "sglang", 4),
    ("sglang serve --model-path deepseek-v3 --tp 16 --dp 16 --enable-dp-attention", "sglang", 16),
    ("trtllm-serve Qwen/Qwen3-32B --tp_size 2", "tensorrt-llm", 2),
    ("llama-server -m qwen3-8b -ngl 99 -c 8192", "llama.cpp", 1),
    ("llama-server -m qwen3-8b -ngl 99 -c 8192 -ts 3,1", "llama.cpp", 2),
    ("OLLAMA_NUM_PARALLEL=2 ollama run qwen3-8b", "ollama", 1),
]


@pytest.mark.parametrize(("line", "engine", "cards"), ENGINES, ids=[row[0] for row in ENGINES])
def test_engine_and_cards(line: str, engine: str, cards: int) -> None:
    """The engine is the line's, and so are the cards of its layout."""
    answer = kvplan.fit(from_=line, gpu=H100, offline=True).to_dict()

    assert (engine, cards) == (answer["engine"]["name"], answer["device"]["count"])


def test_what_is_given_beside_a_line_holds() -> None:
    """A flag, a release and the model of a path that is not here."""
    answer = kvplan.fit(
        "qwen3-8b",
        from_="docker run vllm/vllm-openai:v0.11.0 --model /models/q --max-model-len 8192",
        gpu=H100,
        max_model_len=4096,
    )

    assert ("0.11.0", 4096) == (answer.plan.version, launch(answer)["--max-model-len"])
    assert "/models/q of the command line is taken to be qwen3-8b." in answer.warnings


def test_what_is_not_used_is_said() -> None:
    """Flags without an effect, flags that are not modelled, and variables."""
    line = "VLLM_USE_V1=1 vllm serve qwen3-8b --port 1 --enable-dbo"
    said = kvplan.fit(from_=line, gpu=H100).warnings

    assert said == (
        "Left out, as it touches neither memory nor speed: --port.",
        "vllm has --enable-dbo, and what it does to memory is not modelled.",
        "Not modelled of the environment: VLLM_USE_V1.",
    )


def test_more_cards_than_the_line_takes() -> None:
    """A line without a layout starts one card, whatever there is."""
    said = kvplan.fit(from_="vllm serve qwen3-8b", gpu=H100, gpus=2).warnings

    assert (
        "The command line takes 1 card, and --gpus says 2: the launch shows their use." == said[0]
    )


def test_keys_of_the_config_are_replaced() -> None:
    """--hf-overrides are keys of the config."""
    line = """vllm serve qwen3-8b --hf-overrides '{"num_key_value_heads": 4}'"""
    less = kvplan.fit(from_=line, gpu=H100)

    half = kvplan.fit("qwen3-8b", gpu=H100).plan.pool.bytes_per_block
    assert half == 2 * (less.plan.pool.bytes_per_block or 0)


def test_a_fork_with_the_same_program() -> None:
    """ik_llama.cpp's server is llama-server too."""
    answer = kvplan.fit(
        from_="llama-server -m qwen3-8b -c 8192", engine="ik_llama.cpp", gpu="rtx-4090"
    )

    assert "ik_llama.cpp" == answer.plan.engine


def test_files(tmp_path: Path) -> None:
    """A script and a manifest of the same start, and one container of two."""
    script = tmp_path / "start.sh"
    script.write_text("#!/bin/sh\nTP=2  # cards\nexec vllm serve qwen3-8b -tp $TP\n")
    manifest = tmp_path / "compose.yaml"
    manifest.write_text(
        "services:\n"
        "  a: {image: vllm/vllm-openai, command: [--model, qwen3-8b, -tp, 2]}\n"
        "  b: {image: vllm/vllm-openai, command: [--model, qwen3-14b]}\n"
    )

    first = kvplan.fit(from_=str(script), gpu=H100)
    second = kvplan.fit(from_=f"{manifest}#a", gpu=H100)
    assert first.to_dict() == second.to_dict()
    with pytest.raises(BadValue, match="starts 2 engines"):
        kvplan.fit(from_=str(manifest), gpu=H100)


def test_a_file_of_flags(tmp_path: Path) -> None:
    """TensorRT-LLM's file has the last word, vLLM's the first; what is not modelled is named."""
    file = tmp_path / "options.yml"
    file.write_text(
        "kv_cache_config: {free_gpu_memory_fraction: 0.7, copy: 1}\nmax_batch_size: 8\n"
    )
    line = f"trtllm-serve qwen3-8b --max_batch_size 4 --extra_llm_api_options {file}"
    first = kvplan.fit(from_=line, gpu=H100)
    file.write_text("model: qwen3-8b\nmax-model-len: 4096\nmax-num-seqs: 8\nport: 1\n")
    second = kvplan.fit(from_=f"vllm serve --config {file} --max-num-seqs 4", gpu=H100)
    third = kvplan.fit(from_="vllm serve qwen3-8b --config /absent.yaml", gpu=H100)

    assert {"--free-gpu-memory-fraction": 0.7, "--max-batch-size": 8} == launch(first)
    assert first.warnings[0] == "Not modelled of options.yml: kv_cache_config.copy."
    assert {"--max-model-len": 4096, "--max-num-seqs": 4} == launch(second)
    assert "from /absent.yaml, which is not on this machine" in third.warnings[0]


REFUSED: list[tuple[str, dict[str, Any], type[KvplanError], str]] = [
    ("vllm serve", {}, BadValue, "names no model"),
    ("vllm serve qwen3-8b", {"model": "qwen3-14b"}, BadValue, "MODEL is qwen3-14b"),
    ("vllm serve qwen3-8b", {"engine": "sglang"}, BadValue, "starts vllm"),
    ("vllm serve /models/q", {}, BadValue, "not on this machine"),
    ("vllm serve qwen3-8b --foo", {}, BadValue, "has no flag '--foo'"),
    ("vllm serve qwen3-8b -tp two", {}, BadValue, "--tensor-parallel-size"),
    ("vllm serve qwen3-8b -tp $TP", {}, BadValue, "$TP"),
    ("vllm serve qwen3-8b --hf-overrides [1]", {}, BadValue, "not a JSON object"),
    ("vllm serve 'qwen3-8b", {}, BadValue, "not closed"),
    ("nothing", {}, BadValue, "starts no engine"),
    ("absent.yaml", {}, SourceUnreachable, "absent.yaml"),
    ("\0", {}, BadValue, "NUL"),
    ("vllm serve " + "x" * 10_000_000, {}, BadValue, "10,000,011 characters"),
]


@pytest.mark.parametrize(
    ("line", "more", "error", "words"), REFUSED, ids=[row[0][:40] for row in REFUSED]
)
def test_refused(line: str, more: dict[str, Any], error: type[KvplanError], words: str) -> None:
    """What cannot be read is a sentence, at once."""
    begin = time.perf_counter()
    with pytest.raises(error) as refused:
        kvplan.fit(from_=line, gpu=H100, **more)

    assert words in refused.value.message
    assert time.perf_counter() - begin < 1


def test_files_that_are_none(tmp_path: Path) -> None:
    """Bytes, and a file that is too large."""
    noise = tmp_path / "noise.sh"
    noise.write_bytes(bytes(range(256)))
    large = tmp_path / "large.yaml"
    large.write_bytes(b"a: b\n" * 2_000_000)

    for file in (noise, large):
        with pytest.raises(BadFile):
            kvplan.fit(from_=str(file), gpu=H100)


def test_no_model_at_all() -> None:
    """Without a model and without a line there is no question."""
    with pytest.raises(BadValue, match="No MODEL is named"):
        kvplan.fit(gpu=H100)
