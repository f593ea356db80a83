"""The reference of the command is what the command says of itself."""

from __future__ import annotations

from tools.cli_reference import PAGE, page


def test_the_page_is_current() -> None:
    """``python -m tools.cli_reference`` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()
