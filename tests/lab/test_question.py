"""Questions that cannot be answered are refused in a sentence, before anything is loaded."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadQuestion


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"caches": "full,zip"}, "No cache is named 'zip'. Known: full, none, static"),
        ({"caches": ",full"}, "No cache is named ''"),
        ({"compile": float("nan")}, "--compile nan is not from 0"),
        ({"compile": float("inf")}, "--compile inf is not from 0"),
        ({"compile": -1}, "--compile -1 is not from 0"),
        ({"sinks": 128}, "--sinks 128 are not fewer than the 128 of --budget"),
        ({"residual": 48}, "--residual 48 is no multiple of --group 32"),
        ({"group": 4, "residual": 4}, "--group 4, or that of 8"),
        ({"passages": 65}, "--passages 65 is not a number from 0 to 64"),
        ({"passage": 10}, "--passage 10 is not a number from 64"),
        ({"needles": "10"}, "--needles 10 is not a number from 64"),
        ({"needles": [192, 10]}, "--needles 10 is not a number from 64"),
        ({"caches": ["full", "zip"]}, "No cache is named 'zip'"),
        ({"prompt": 0}, "--prompt 0 is not a whole number from 1"),
        ({"output": "x"}, "'x' is not a number of tokens"),
        ({"threads": 0}, "--threads 0 is not a whole number from 1"),
        ({"requests": 257}, "--requests 257 is not a whole number from 1 to 256"),
    ],
)
def test_bad_questions(asked: dict[str, Any], words: str) -> None:
    """The flag, what it was, and what it may be."""
    with pytest.raises(BadQuestion) as error:
        kvplan.lab(**asked)

    assert words in str(error.value)


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra a sentence says how to install it."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BadQuestion) as error:
        kvplan.lab()

    assert "pip install 'kvplan[lab]'" in str(error.value)


def test_the_command_without_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says the same sentence, and that the question was wrong."""
    from kvplan.cli import run

    monkeypatch.setitem(sys.modules, "torch", None)
    status = run(["lab", "--caches", "full"])

    assert 2 == status
    assert "pip install 'kvplan[lab]'" in capsys.readouterr().err


def test_the_package_answers_as_the_verb() -> None:
    """However it was imported first, ``kvplan.lab`` can be called."""
    from kvplan.lab import kinds

    with pytest.raises(BadQuestion):
        sys.modules["kvplan.lab"](caches="zip")
    assert "full" in kinds.KINDS
