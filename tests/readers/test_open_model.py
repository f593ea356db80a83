"""Paths and names: what is read as which, and the sentence where nothing can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvplan.core.errors import BadFile, SourceUnreachable, UnknownName
from kvplan.readers.open_model import open_model

LLAMA = json.dumps({"model_type": "llama"})


def test_a_wrong_magic_is_named(tmp_path: Path) -> None:
    """A .gguf that is none is not taken for JSON."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGML" + bytes(100))

    with pytest.raises(BadFile, match="begins with b'GGML'"):
        open_model(file)


def test_an_index_without_a_config(tmp_path: Path) -> None:
    """Other files of the folder do not answer for it."""
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "model-1.safetensors"}}')

    with pytest.raises(BadFile, match="holds tensors and no geometry"):
        open_model(index)


def test_a_home_that_is_not_there() -> None:
    """``~`` of nobody is a path that is not there."""
    with pytest.raises(SourceUnreachable, match="There is no file"):
        open_model("~nobody-of-this-name/config.json", offline=True)


def test_a_file_that_fails_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system says is passed on."""
    file = tmp_path / "config.json"
    file.write_text(LLAMA)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(SourceUnreachable, match="cannot be read: Permission denied"):
        open_model(file)


def test_a_folder_with_a_gguf_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its bare name too."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "model.gguf").write_bytes(b"GGML")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BadFile, match="not a GGUF file"):
        open_model("mine", offline=True)


def test_an_empty_folder_named_like_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue answers."""
    (tmp_path / "llama-3.1-8b").mkdir()
    monkeypatch.chdir(tmp_path)

    assert open_model("llama-3.1-8b", offline=True).name == "meta-llama/Llama-3.1-8B"


def test_links_in_a_circle(tmp_path: Path) -> None:
    """A link to itself is no file."""
    link = tmp_path / "loop.json"
    link.symlink_to(link)

    with pytest.raises((SourceUnreachable, UnknownName)):
        open_model(str(link), offline=True)
