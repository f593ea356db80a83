"""Where a question may name no files, none is opened, wherever its name stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.core.errors import KvplanError
from kvplan.readers.catalogue import config_of, find
from kvplan.readers.ranges import Memory
from kvplan.readers.reach import names_alone
from tests.readers.gguf_bytes import header

CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 777}
HEADER = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.attention.head_count": 4, "llama.context_length": 512,
}  # fmt: skip
LOG = b"INFO vLLM API server version 0.19.0\nINFO GPU KV cache size: 1 tokens\n"
COMMAND = "vllm serve qwen3-32b --tensor-parallel-size 2"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of a server that a stranger may ask for."""
    for name in ("config.json", "gpt2/config.json", "org/model/config.json", "x.gguf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(CONFIG))
    (tmp_path / "run.sh").write_text(COMMAND)
    (tmp_path / "flags.yaml").write_text("max-model-len: 777\n")
    (tmp_path / "start.log").write_text("GPU KV cache size: 777 tokens\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


PATHS = [
    "{}/config.json", "./config.json", "config.json", "org/model", "{}/x.gguf", "x.gguf", "-",
    "~/config.json", "{}", ".", "ollama/gpt2", "/dev/zero", "/etc/passwd",
]  # fmt: skip
ASKED: list[tuple[str, Callable[[str], Any]]] = [
    ("size", kvplan.size),
    ("fit", lambda path: kvplan.fit(path, gpu="h100")),
    ("fit a path", lambda path: kvplan.fit(Path(path), gpu="h100")),
    ("from", lambda path: kvplan.fit(from_=path, gpu="h100")),
    ("from a line", lambda path: kvplan.fit(from_=f"vllm serve {path}", gpu="h100")),
    ("explain", kvplan.explain),
    ("beside a log", lambda path: kvplan.explain(LOG, model=path, gpu="h100")),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("ask", [ask for _, ask in ASKED], ids=[name for name, _ in ASKED])
@pytest.mark.usefixtures("folder")
def test_no_file_is_opened(ask: Callable[[str], Any], path: str, tmp_path: Path) -> None:
    """Each is refused in a sentence that says nothing of the file, not even that it is there."""
    with names_alone(), pytest.raises(KvplanError) as refused:
        json.dumps(ask(path.format(tmp_path)).to_dict())

    assert "777" not in str(refused.value)


@pytest.mark.usefixtures("folder")
def test_a_name_is_the_catalogues_and_not_the_folders() -> None:
    """A folder with a model's name is passed over."""
    with names_alone():
        answer = kvplan.size("gpt2")

    assert 12 == answer.model.layers()[0][1]


@pytest.mark.usefixtures("folder")
def test_a_file_of_flags_is_not_opened(tmp_path: Path) -> None:
    """A command line that names one is answered without it, and says so."""
    line = f"vllm serve qwen3-32b --config {tmp_path}/flags.yaml"
    with names_alone():
        answer = kvplan.fit(from_=line, gpu="h100", gpus=2)

    assert any("is not on this machine" in text for text in answer.warnings)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "https://localhost/metrics"])
def test_no_address_is_asked(address: str) -> None:
    """Neither a scrape nor a model comes from an address that a question names."""
    for ask in (kvplan.explain, kvplan.size):
        with names_alone(), pytest.raises(KvplanError):
            ask(address)


def test_what_is_sent_is_answered() -> None:
    """A config, a header and a log are their own text."""
    found = find("llama-3.1-8b")
    assert found is not None
    with names_alone():
        config = kvplan.size(config_of(found.entry))
        sent = kvplan.size(Memory(header(HEADER), "sent.gguf"))
        log = kvplan.explain(b"INFO GPU KV cache size: 777 tokens\n")

    assert 131072 == config.bytes_per_token
    assert "sent.gguf" == sent.model.source
    assert 777 == log.start.number("kv_tokens")
