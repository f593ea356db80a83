"""How far a question may reach: to files and addresses, or to names alone.

The command asks for the person at the keyboard, who may open what they like. A page asks for
whoever sent the request: there a model is a name of the catalogue or of the hub, a log is its own
text, and no path or address that a text holds is looked at, not even to tell whether it exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kvplan.core.errors import BadValue

_NAMES_ALONE: ContextVar[bool] = ContextVar("names_alone", default=False)


@contextmanager
def names_alone() -> Iterator[None]:
    """Within it no file, standard input or address that a question names is opened."""
    token = _NAMES_ALONE.set(True)
    try:
        yield
    finally:
        _NAMES_ALONE.reset(token)


def is_open() -> bool:
    """Whether a question may name files and addresses."""
    return not _NAMES_ALONE.get()


def check(what: str) -> None:
    """Go on only where files and addresses may be named.

    Raises:
        BadValue: they may not; ``what`` begins the sentence.
    """
    if not is_open():
        raise BadValue(
            f"{what} is not opened here.",
            "Give a name of the catalogue or of the hub, or the text itself.",
        )
