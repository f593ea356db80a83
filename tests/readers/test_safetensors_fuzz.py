"""Any bytes and any JSON: tensors or a sentence, never another exception."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvplan.core.errors import KvplanError
from kvplan.readers.ollama import read_ollama
from kvplan.readers.open_model import open_model
from kvplan.readers.ranges import Memory
from kvplan.readers.safetensors import read_checkpoint
from kvplan.readers.safetensors_header import read_safetensors_header

words = st.sampled_from(
    ["dtype", "shape", "data_offsets", "__metadata__", "weight_map", "metadata", "total_size",
     "layers", "mediaType", "digest", "size", "model_type", "llama", "F16", "a.safetensors",
     "application/vnd.ollama.image.model", "sha256:" + "0" * 64, "../x"]
)  # fmt: skip
leaves = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=3)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
QUICK = settings(
    max_examples=100, deadline=5000, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def ask(read: Callable[[], Any]) -> None:
    """An answer or a sentence."""
    with suppress(KvplanError):
        read()


@QUICK
@given(trees, st.integers(0, 20), st.integers(-9, 9))
def test_any_header(tree: Any, data: int, wrong: int) -> None:
    """Whatever the JSON says, of whatever length."""
    body = json.dumps(tree).encode()
    whole = struct.pack("<Q", max(0, len(body) + wrong)) + body + bytes(data)
    ask(lambda: read_safetensors_header(Memory(whole)))


@QUICK
@given(st.binary(max_size=100))
def test_any_bytes(data: bytes) -> None:
    """Whatever the file is."""
    ask(lambda: read_safetensors_header(Memory(data)))
    ask(lambda: read_safetensors_header(Memory(struct.pack("<Q", len(data)) + data)))


@QUICK
@given(trees, trees)
def test_any_index_and_config(index: Any, config: Any) -> None:
    """Whatever is in a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        (folder / "config.json").write_text(json.dumps(config))
        ask(lambda: open_model(folder))
        ask(lambda: read_checkpoint(folder))


@QUICK
@given(trees | st.fixed_dictionaries({"layers": st.lists(trees, max_size=3)}), st.text(max_size=12))
def test_any_manifest_and_name(manifest: Any, asked: str) -> None:
    """Whatever Ollama's store holds, and whatever is asked of it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "manifests/library.example/library/tiny/latest"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(manifest))
        ask(lambda: read_ollama("tiny", stores=[Path(name)]))
        ask(lambda: read_ollama(asked, stores=[Path(name)]))
