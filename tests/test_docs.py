"""What the README and the docs show is what the commands print today."""

from __future__ import annotations

import doctest
import re

import pytest

import kvplan
from tools.docs import Shown, documents, printed, shown

SHOWN = [one for path in documents() for one in shown(path)]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)
EXAMPLES = [
    (path.name, place, block)
    for path in documents()
    for place, block in enumerate(PYTHON.findall(path.read_text(encoding="utf-8")))
    if ">>>" in block
]


@pytest.mark.parametrize("one", SHOWN, ids=[one.name for one in SHOWN])
def test_shown_output(one: Shown) -> None:
    """``python tools/docs.py`` rewrites what has changed."""
    assert one.output == printed(one.command)


@pytest.mark.parametrize(("name", "place", "block"), EXAMPLES)
def test_python_examples(name: str, place: int, block: str) -> None:
    """Each interactive example prints what stands under it."""
    test = doctest.DocTestParser().get_doctest(block, {}, f"{name}:{place}", name, 0)
    failures = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)

    assert 0 == failures.failed


def test_the_packages_own_example() -> None:
    """The package's docstring shows a figure that is right."""
    assert 0 == doctest.testmod(kvplan).failed


def test_the_readme_shows_commands() -> None:
    """The README has a command with its output and the Python twin."""
    names = {one.path.name for one in SHOWN}

    assert "README.md" in names
    assert any(name == "README.md" for name, _, _ in EXAMPLES)
