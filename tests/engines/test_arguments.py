"""The words of an engine's command line: flags, their values, and what is not modelled."""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.engines.arguments import Arguments, of_environment, read_arguments
from kvplan.engines.known_flags import known_flags
from kvplan.engines.registry import engine_of


def read(engine: str, line: str) -> Arguments:
    return read_arguments(shlex.split(line), engine_of(engine).flags, known_flags(engine))


# An engine, a line, its model and its flags.
LINES: list[tuple[str, str, str | None, dict[str, Any]]] = [
    ("vllm", "Q/x -tp 2", "Q/x", {"--tensor-parallel-size": "2"}),
    ("vllm", "--model Q/x --tensor_parallel_size=2", "Q/x", {"--tensor-parallel-size": "2"}),
    ("vllm", "Q/x -tp 2 -tp 4", "Q/x", {"--tensor-parallel-size": "4"}),
    ("vllm", "Q/x --served-model-name a b --enforce-eager", "Q/x", {"--enforce-eager": "true"}),
    ("vllm", "Q/x --enable-chunked-prefill False", "Q/x", {"--enable-chunked-prefill": "false"}),
    ("vllm", "Q/x --no-enforce-eager", "Q/x", {"--enforce-eager": "false"}),
    ("vllm", "Q/x -sc.method mtp -sc.num_speculative_tokens 2", "Q/x",
     {"--speculative-config": '{"method": "mtp", "num_speculative_tokens": 2}'}),
    ("vllm", "Q/x --kv-cache-dtype-skip-layers 0 1", "Q/x",
     {"--kv-cache-dtype-skip-layers": "0 1"}),
    ("vllm", "Q/x --max-model-len -1", "Q/x", {"--max-model-len": "-1"}),
    ("sglang", "--model-path Q/x --tp 2", "Q/x", {"--tp-size": "2"}),
    ("llama.cpp", "-m x.gguf -ngl -1 -fa -c 512", "x.gguf",
     {"--n-gpu-layers": "-1", "--flash-attn": "on", "--ctx-size": "512"}),
    ("llama.cpp", "-hf a/b:Q8_0 -fa off", "a/b:Q8_0", {"--flash-attn": "off"}),
    ("tensorrt-llm", "Q/x --kv_cache_free_gpu_memory_fraction 0.8", "Q/x",
     {"--free-gpu-memory-fraction": "0.8"}),
    ("vllm", "", None, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "line", "model", "flags"), LINES, ids=[f"{row[0]} {row[1]}" for row in LINES]
)
def test_model_and_flags(engine: str, line: str, model: str | None, flags: dict[str, Any]) -> None:
    """Flags are told apart as the engine's parser does."""
    found = read(engine, line)

    assert (model, flags) == (found.model, found.flags)


def test_what_is_left_out_is_named() -> None:
    """What touches neither memory nor speed, and what may."""
    found = read("vllm", "Q/x --port 1 --api-key a b -O3 --compilation-config.mode 3 --hf-token")

    assert ["--port", "--api-key", "--hf-token"] == found.left_out
    assert ["-O", "--compilation-config"] == found.unmodelled


USUAL = {
    "vllm": "--port --host --api-key --served-model-name --trust-remote-code --seed "
    "--uvicorn-log-level --enable-auto-tool-choice --tool-call-parser --reasoning-parser "
    "--chat-template --disable-log-requests --disable-log-stats --download-dir --load-format "
    "--tokenizer --generation-config --ssl-keyfile --distributed-executor-backend",
    "sglang": "--port --host --api-key --served-model-name --trust-remote-code --random-seed "
    "--tool-call-parser --reasoning-parser --chat-template --log-level --enable-metrics "
    "--dist-init-addr --nnodes --node-rank --schedule-policy --watchdog-timeout",
    "llama.cpp": "--port --host --api-key --alias --jinja --chat-template-file --threads -t --temp "
    "--top-p --metrics --slots --verbose --seed --no-mmap --no-webui --log-file --reasoning-format",
    "tensorrt-llm": "--port --host --log-level --trust-remote-code --tokenizer --reasoning-parser",
}  # fmt: skip


@pytest.mark.parametrize("engine", USUAL)
def test_usual_flags_are_harmless(engine: str) -> None:
    """The flags of every second command line are known to touch neither memory nor speed."""
    known, table = known_flags(engine), engine_of(engine).flags
    others = [f for f in USUAL[engine].split() if f not in known.harmless and not table.find(f)]

    assert not others


REFUSED = [
    ("Q/x --max-model-length 3", "--max-model-length", "--max-model-len"),
    ("Q/x --tensor-paralel-size 3", "--tensor-paralel-size", "--tensor-parallel-size"),
    ("Q/x --foo.bar 3", "--foo.bar", ""),
    ("Q/x -tp", "-tp has no value", ""),
    ("Q/x -tp --port 3", "-tp has no value", ""),
    ("Q/x --port", "--port has no value", ""),
    ("a " * 5_000, "5,000 words", ""),
]


@pytest.mark.parametrize(("line", "said", "near"), REFUSED, ids=[row[0][:40] for row in REFUSED])
def test_refused(line: str, said: str, near: str) -> None:
    """A flag that is not known is named with the nearest that are."""
    with pytest.raises(BadValue) as refused:
        read("vllm", line)

    assert said in refused.value.message
    assert near in refused.value.hint


def test_two_models() -> None:
    """A model that is named twice is one model, two are none."""
    assert "a" == read("vllm", "a --model a").model
    with pytest.raises(BadValue, match="two models: 'a' and 'b'"):
        _ = read("vllm", "a --model b").model


def test_environment() -> None:
    """Variables that stand for flags, and those of the engine that are not read."""
    found = of_environment(
        {"VLLM_ATTENTION_BACKEND": "X", "VLLM_USE_V1": "0", "VLLM_API_KEY": "k", "HOME": "/"},
        known_flags("vllm"),
    )

    assert ({"--attention-backend": "X"}, ["VLLM_USE_V1"]) == found


def test_the_table_is_whole() -> None:
    """Every engine's row has a source, and every variable stands for a flag or a model."""
    rows = json.loads(files("kvplan").joinpath("data/engine_flags.json").read_text("utf-8"))
    for engine, row in rows.items():
        known, table = known_flags(engine), engine_of(engine).flags
        lost = [f for f in known.environment.values() if not table.find(f) and f not in known.model]
        assert ([], True) == (lost, bool(row["source"])), engine
