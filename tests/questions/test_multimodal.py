"""Images and videos: the tokens that a prompt of them can be."""

from __future__ import annotations

import re

import pytest

from tests.questions.ask import fit
from tests.questions.rows import printed, settled

LIMITS = '{"image": 10, "video": 1}'


def _worst_case_tokens() -> int:
    """As the plan's warning has it."""
    answer = fit("Qwen/Qwen2.5-VL-72B-Instruct", engine_version="0.9.2", limit_mm_per_prompt=LIMITS)
    said = next(text for text in answer.warnings if "--limit-mm-per-prompt" in text)
    return int(re.findall(r"([\d,]+) tokens", said)[0].replace(",", ""))


ANSWERS = {"p125.tokens": _worst_case_tokens}
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)
