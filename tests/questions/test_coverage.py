"""Every settled figure is answered, or listed with the reason why it is not."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest

from tests.questions.rows import THEMES, rows, settled

# Rows on llama.cpp, ik_llama.cpp and Ollama: tests/engines/llamacpp/test_questions.py.
ELSEWHERE = frozenset({
    "p065", "p066", "p069", "p072", "p073", "p074", "p075", "p079", "p128",
})  # fmt: skip
WITHOUT_ROWS = ("gguf", "speculative")  # answered elsewhere, and no row of the first tier


def modules() -> list[ModuleType]:
    """The tests of each theme."""
    names = (theme.replace("-", "_") for theme in THEMES if theme not in WITHOUT_ROWS)
    return [import_module(f"tests.questions.test_{name}") for name in names]


def test_every_figure_has_its_place() -> None:
    """Answered or excepted, once."""
    places = [
        key
        for module in modules()
        for table in (module.ANSWERS, module.EXCEPTIONS)
        for key in table
    ]
    expected = sorted(key for key in settled() if key.partition(".")[0] not in ELSEWHERE)

    assert expected == sorted(places)


@pytest.mark.parametrize("row", sorted(ELSEWHERE))
def test_what_is_elsewhere_is_a_row(row: str) -> None:
    """No name that the questions do not have."""
    assert row in rows()


def test_most_figures_are_answered() -> None:
    """Exceptions stay few: each has a reason that is a sentence."""
    reasons = [reason for module in modules() for reason in module.EXCEPTIONS.values()]
    answers = [key for module in modules() for key in module.ANSWERS]

    assert len(reasons) * 2 < len(answers)
    assert all(len(reason) > 20 for reason in reasons)
