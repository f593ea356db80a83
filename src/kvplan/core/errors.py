"""Everything that can go wrong, as one tree.

    KvplanError
    ├── BadQuestion           exit 2   the question is wrong
    │   ├── BadValue                   a flag or number that cannot be read
    │   ├── BadFile                    a file that is not what it says, or is hostile
    │   ├── UnknownName                a model, device, engine or format that is not known
    │   └── UnknownModelType           a config whose cache cannot be told from its keys
    └── SourceUnreachable     exit 3   a file, hub or server that cannot be reached

A message is one sentence that says what was asked and what was found; the hint says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable


class KvplanError(Exception):
    """An error meant for the person who asked: a sentence, a hint and an exit status."""

    code = "error"
    exit_status = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def to_dict(self) -> dict[str, str]:
        """The ``error`` object of the JSON contract."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


class BadQuestion(KvplanError):
    """The question cannot be answered as it was put."""

    code = "bad_question"


class BadValue(BadQuestion):
    """A value that cannot be read, or that no model or card can have."""

    code = "bad_value"


class BadFile(BadQuestion):
    """A file that is not what it claims to be, is cut short, or is larger than its kind can be."""

    code = "bad_file"


class UnknownName(BadQuestion):
    """A name that is not known, with the nearest ones that are."""

    code = "unknown_name"

    def __init__(self, kind: str, name: str, near: Iterable[str] = (), hint: str = "") -> None:
        self.near = tuple(near)
        found = f"Did you mean {', '.join(self.near)}?" if self.near else ""
        super().__init__(f"No {kind} is named {name!r}.", " ".join(filter(None, (found, hint))))


class UnknownModelType(BadQuestion):
    """A config whose kind of cache cannot be told, with the keys that say so."""

    code = "unknown_model_type"


class SourceUnreachable(KvplanError):
    """A file, hub or server that does not answer."""

    code = "source_unreachable"
    exit_status = 3


def not_installed(what: str, extra: str) -> BadValue:
    """The error of an extra that is missing; ``what`` is as in "A plot needs the plot extra"."""
    return BadValue(
        f"{what}, which is not installed.", f"Install it with: pip install 'kvplan[{extra}]'"
    )
