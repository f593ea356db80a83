"""Ollama's store: names, manifests, blobs, and what must not become a path."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.errors import BadFile, BadValue, KvplanError, SourceUnreachable, UnknownName
from kvplan.readers.ollama import MEDIA, Name, default_stores, parse_name, read_ollama
from tests.readers.gguf_bytes import header

LLAMA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
}
MODEL = header(LLAMA, [("token_embd.weight", (64, 8), 0, 0)]) + bytes(4096)
PROJECTOR = header({"general.architecture": "clip"}, [("v.a.weight", (32,), 0, 0)]) + bytes(512)


def blob(store: Path, data: bytes, kind: str = "model", **changes: Any) -> dict[str, Any]:
    """A layer and its file."""
    code = hashlib.sha256(data).hexdigest()
    (store / "blobs").mkdir(parents=True, exist_ok=True)
    (store / "blobs" / f"sha256-{code}").write_bytes(data)
    layer = {"mediaType": MEDIA + kind, "digest": f"sha256:{code}", "size": len(data)}
    return layer | changes


def stored(store: Path, layers: Any, path: str = "library.example/library/tiny/1b") -> Path:
    manifest = store / "manifests" / path
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return store


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("llama3.1", Name("", "library", "llama3.1", "latest")),
        ("llama3.1:8b", Name("", "library", "llama3.1", "8b")),
        ("me/mine:x", Name("", "me", "mine", "x")),
        ("hf.co/org/n-GGUF:Q4_K_M", Name("hf.co", "org", "n-GGUF", "Q4_K_M")),
        ("localhost:5000/a/b", Name("localhost:5000", "a", "b", "latest")),
        ("localhost:5000/a/b:c", Name("localhost:5000", "a", "b", "c")),
    ],
)
def test_names(text: str, expected: Name) -> None:
    """Host, namespace, model and tag, with Ollama's defaults."""
    assert expected == parse_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "a:", ":b", "a/b/c/d", "../x", "a/../b", "a/..:b", "a:..", "/a", "a/", "a b",
        "a\0b", "a\\b", "-a", ".a", "a:b/c/../..", "x" * 200, "a:b:c/d", "ä", "a\n",
        "http://a/b",
    ],
)  # fmt: skip
def test_what_is_no_name(text: str, tmp_path: Path) -> None:
    """Nothing of it becomes a path."""
    if text == "a\n":
        assert "a" == parse_name(text).model
        return
    with pytest.raises(BadValue, match="is no name of a model of Ollama"):
        read_ollama(text, stores=[tmp_path])


def test_a_model_of_the_store(tmp_path: Path) -> None:
    """The GGUF that the manifest points to, under the name that was asked for."""
    stored(tmp_path, [blob(tmp_path, b"{}", "params"), blob(tmp_path, MODEL)])
    found = read_ollama("tiny:1b", stores=[tmp_path])

    assert "tiny:1b" == found.name
    assert "llama" == found.model_type
    assert found.source.startswith("ollama: ")
    assert found.weights is not None
    assert 64 * 8 * 4 == found.weights.num_bytes


def test_a_projector_adds_its_weights(tmp_path: Path) -> None:
    """A vision model is two files."""
    stored(tmp_path, [blob(tmp_path, MODEL), blob(tmp_path, PROJECTOR, "projector")])
    found = read_ollama("tiny:1b", stores=[tmp_path])

    assert found.weights is not None
    assert (64 * 8 + 32, 64 * 8 * 4 + 128) == (found.weights.parameters, found.weights.num_bytes)
    assert found.weights.source.endswith("projector: 128 bytes")


def test_stores_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$OLLAMA_MODELS first, then the user's own, then the service's."""
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "mine"))
    monkeypatch.setenv("HOME", str(tmp_path))
    stored(tmp_path / ".ollama/models", [blob(tmp_path / ".ollama/models", MODEL)])

    assert [
        tmp_path / "mine",
        tmp_path / ".ollama/models",
        Path("/usr/share/ollama/.ollama/models"),
    ] == default_stores()
    assert "tiny:1b" == read_ollama("TINY:1B").name.lower()


def test_an_unknown_name_has_the_nearest(tmp_path: Path) -> None:
    """The store's own names are suggested; without a store the places looked at are named."""
    stored(tmp_path, [blob(tmp_path, MODEL)])

    with pytest.raises(UnknownName, match=r"No Ollama model is named 'tini:1b'. .* tiny:1b\?"):
        read_ollama("tini:1b", stores=[tmp_path])
    with pytest.raises(UnknownName, match="The store has 1 models"):
        read_ollama("zzzzzzzz", stores=[tmp_path])
    with pytest.raises(SourceUnreachable, match="no store of Ollama's models: looked in"):
        read_ollama("tiny", stores=[tmp_path / "absent"])


def layer(**changes: Any) -> dict[str, Any]:
    return {"mediaType": MEDIA + "model", "digest": "sha256:" + "0" * 64, "size": 1} | changes


@pytest.mark.parametrize(
    ("layers", "error", "said"),
    [
        (None, BadFile, "has no list of at most 256 layers"),
        ([layer()] * 300, BadFile, "has no list of at most 256 layers"),
        ([7], BadFile, "has a layer that is no object"),
        ([{}], BadFile, "a layer without a media type or size"),
        ([layer(size=True)], BadFile, "a layer without a media type or size"),
        ([layer(digest=None)], BadFile, "has the digest 'None', no SHA-256"),
        ([layer(digest="sha256:../../../etc/passwd")], BadFile, "no SHA-256"),
        ([layer(digest="sha256:" + "0" * 61 + "/..")], BadFile, "no SHA-256"),
        ([layer(digest="md5:" + "0" * 64)], BadFile, "no SHA-256"),
        ([layer()], SourceUnreachable, "which is not there"),
        ([layer(mediaType=MEDIA + "template")], BadFile, "has no GGUF layer"),
        ([], BadFile, "has no GGUF layer"),
    ],
)
def test_hostile_manifests(
    tmp_path: Path, layers: Any, error: type[KvplanError], said: str
) -> None:
    """Digests are digests before they are paths, and layers are what they must be."""
    with pytest.raises(error, match=said):
        read_ollama("tiny:1b", stores=[stored(tmp_path, layers)])


def test_blobs_that_are_not_what_the_manifest_says(tmp_path: Path) -> None:
    """Another size, another kind of file, or a manifest that is no JSON."""
    with pytest.raises(BadFile, match="bytes where its manifest says 5"):
        read_ollama("tiny:1b", stores=[stored(tmp_path, [blob(tmp_path, MODEL, size=5)])])
    with pytest.raises(BadFile, match="is not a GGUF file"):
        read_ollama("tiny:1b", stores=[stored(tmp_path, [blob(tmp_path, b"PK..")])])
    (tmp_path / "manifests/library.example/library/tiny/1b").write_text("{")
    with pytest.raises(BadFile, match="is not JSON"):
        read_ollama("tiny:1b", stores=[tmp_path])
