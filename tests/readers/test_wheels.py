"""A wheel as pip downloads it, or a sentence of what to do instead."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.errors import SourceUnreachable
from kvplan.readers.wheels import download_wheel


def answer(monkeypatch: pytest.MonkeyPatch, doing: Any) -> None:
    monkeypatch.setattr(subprocess, "run", doing)


def test_the_wheel_that_came(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is asked for is the package alone, without what it requires."""
    asked: list[str] = []

    def run(command: list[str], **_: Any) -> None:
        asked.extend(command)
        (tmp_path / "one-1-py3-none-any.whl").touch()

    answer(monkeypatch, run)

    assert "one-1-py3-none-any.whl" == download_wheel("one==1", tmp_path, "").name
    assert {"--no-deps", "--only-binary", "one==1"} <= set(asked)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (subprocess.TimeoutExpired("pip", 1), "pip did not download one==1 in time. Do it."),
        (subprocess.CalledProcessError(1, "pip", stderr="a\nno such thing\n"),
         "pip could not download one==1: no such thing. Do it. Or: pip download --no-deps one==1"),
        (OSError("no pip"), "pip could not download one==1: no pip"),
    ],
)  # fmt: skip
def test_what_went_wrong(
    fault: Exception, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last that pip said, and what to do."""

    def run(*_: Any, **__: Any) -> None:
        raise fault

    answer(monkeypatch, run)
    with pytest.raises(SourceUnreachable) as error:
        download_wheel("one==1", tmp_path, "Do it.")

    assert str(error.value).startswith(words)


def test_nothing_came(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An answer without a wheel is no wheel."""
    answer(monkeypatch, lambda *_, **__: None)
    with pytest.raises(SourceUnreachable, match="no wheel of one==1"):
        download_wheel("one==1", tmp_path, "")
