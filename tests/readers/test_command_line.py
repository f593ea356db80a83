"""Command lines as people paste them: which engine, its words, the release of its image."""

from __future__ import annotations

import pytest

from kvplan.core.errors import BadValue
from kvplan.readers.command_line import read_command_line

SERVER = "vllm.entrypoints.openai.api_server"

# A text, the engine, its first and last words, the release.
LINES = [
    ("vllm serve Q/x -tp 2", "vllm", "Q/x", "2", None),
    ("/opt/venv/bin/vllm serve Q/x --port 1", "vllm", "Q/x", "1", None),
    ("sudo CUDA_VISIBLE_DEVICES=0 nohup uv run vllm serve Q/x", "vllm", "Q/x", "Q/x", None),
    ("python3 -m vllm.entrypoints.openai.api_server --model Q/x", "vllm", "--model", "Q/x", None),
    ("python -m sglang.launch_server --model-path Q/x", "sglang", "--model-path", "Q/x", None),
    ("sglang serve --model-path Q/x --tp 2", "sglang", "--model-path", "2", None),
    ("trtllm-serve Q/x --tp_size 2", "tensorrt-llm", "Q/x", "2", None),
    ("trtllm-serve serve Q/x", "tensorrt-llm", "Q/x", "Q/x", None),
    ("./build/bin/llama-server -m x.gguf -c 4096", "llama.cpp", "-m", "4096", None),
    (".\\llama-server.exe -m x.gguf".replace("\\", "/"), "llama.cpp", "-m", "x.gguf", None),
    ("llama-cli -hf a/b:Q4_K_M -ngl 99", "llama.cpp", "-hf", "99", None),
    ("OLLAMA_NUM_PARALLEL=4 ollama run llama3.1:8b", "ollama", "llama3.1:8b", "llama3.1:8b", None),
    ("bash -lc 'cd /x && exec vllm serve Q/x -tp 2'", "vllm", "Q/x", "2", None),
    ("pip install vllm && vllm serve Q/x", "vllm", "Q/x", "Q/x", None),
    ("docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.0 --model Q/x",
     "vllm", "--model", "Q/x", "0.11.0"),
    ("docker run -d --rm -it -v a:b -eA=b --name=n vllm/vllm-openai:latest --model Q/x",
     "vllm", "--model", "Q/x", None),
    ("podman run vllm/vllm-openai:v0.8.5.post1 Q/x -tp 2", "vllm", "Q/x", "2", "0.8.5.post1"),
    ("docker run vllm/vllm-openai:v0.20.1rc0 serve Q/x", "vllm", "Q/x", "Q/x", "0.20.1rc0"),
    (f"docker run --entrypoint python3 vllm/vllm-openai@sha256:ab -m {SERVER} --model Q/x",
     "vllm", "--model", "Q/x", None),
    ("docker run --entrypoint bash rocm/vllm:x -c 'vllm serve Q/x'", "vllm", "Q/x", "Q/x", None),
    ("docker run nvcr.io/nvidia/vllm:25.09-py3 vllm serve Q/x", "vllm", "Q/x", "Q/x", None),
    ("docker run --ipc host lmsysorg/sglang:v0.5.3rc0-cu126 sglang serve --model-path Q/x",
     "sglang", "--model-path", "Q/x", "0.5.3rc0"),
    ("docker run ghcr.io/ggml-org/llama.cpp:server-cuda-b6123 -m /m/x.gguf -c 512",
     "llama.cpp", "-m", "512", "b6123"),
    ("docker exec -it box vllm serve Q/x", "vllm", "Q/x", "Q/x", None),
]  # fmt: skip

REFUSED = [
    ("", "starts no engine"),
    ("text-generation-launcher --model-id x", "starts no engine"),
    ("docker run ubuntu sleep 1", "starts no engine"),
    ("docker run", "starts no engine"),
    ("vllm serve Q/x\nvllm serve Q/y", "starts 2 engines"),
    ("vllm bench throughput", "starts no engine"),
]


@pytest.mark.parametrize(
    ("text", "engine", "first", "last", "version"), LINES, ids=[row[0] for row in LINES]
)
def test_the_start_in_a_text(
    text: str, engine: str, first: str, last: str, version: str | None
) -> None:
    """Wrappers, containers and shells are looked through."""
    found = read_command_line(text)

    assert (engine, first, last, version) == (
        found.engine,
        found.words[0],
        found.words[-1],
        found.version,
    )


def test_the_environment_of_a_start() -> None:
    """What stands before it, and what a container is given."""
    line = read_command_line("A=1 vllm serve x")
    box = read_command_line("docker run -e A=1 --env B=2 -eC=3 vllm/vllm-openai --model x")

    assert {"A": "1"} == line.environment
    assert {"A": "1", "B": "2", "C": "3"} == box.environment


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused(text: str, words: str) -> None:
    """A text without one engine is refused, with what would be known."""
    with pytest.raises(BadValue) as refused:
        read_command_line(text)

    assert words in refused.value.message
    assert refused.value.hint
