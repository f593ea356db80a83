"""The accuracy page and the README's comparison are what the tests' cases give today."""

from __future__ import annotations

import pytest

from tools import accuracy
from tools.accuracy_peers import judge, ours


def test_the_page_is_current() -> None:
    """``python -m tools.accuracy`` rewrites what has changed."""
    assert 0 == accuracy.main(check=True)


@pytest.mark.parametrize("model", [name for name, size in judge().items() if size])
def test_ours_is_what_transformers_keeps(model: str) -> None:
    """On the peers' models, to the byte."""
    assert judge()[model] == ours(model)
