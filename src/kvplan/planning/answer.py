"""What every answer has: its verb, the version, warnings, and a dictionary that is the contract."""

from __future__ import annotations

from typing import Any, ClassVar

from kvplan._version import __version__


class Answer:
    """An answer to a question; ``to_dict`` is the JSON of the contract."""

    verb: ClassVar[str]
    warnings: tuple[str, ...]

    __slots__ = ()

    def body(self) -> dict[str, Any]:
        """The verb's own keys."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The whole answer as plain values."""
        head = {"kvplan": __version__, "verb": self.verb, "warnings": list(self.warnings)}
        return head | self.body()
